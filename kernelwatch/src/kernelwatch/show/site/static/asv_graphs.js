// asv 0.6.6 draws graphs with a category on the x axis blank, also without this project's pages. They are not offered here:
// Bandwidth and Transactions have them as bars.
'use strict';

$(document).ready(function () {
    const make = $.asv.ui.make_value_selector_panel;
    const category = (value) => typeof $.asv.convert_benchmark_param_value(value) !== 'number';
    $.asv.ui.make_value_selector_panel = function (navigation, heading, values, setup) {
        const name = $.asv.parse_hash_string(window.location.hash).location[0];
        const {params = []} = $.asv.main_json.benchmarks[name] || {};
        const drawn = (axis) => axis === 0 || !params[axis - 1].some(category);
        return make(navigation, heading, heading === 'x-axis' ? values.filter(drawn) : values, setup);
    };
});
