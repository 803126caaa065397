// The page Details: what the compiler made of the kernels by commit, what each compiler made of them, and how far times differ.
'use strict';

(function ({choices, data, view, resources, compilers, noise}) {
    const VIEWS = {resources, compilers, noise};

    view.page(async function (params, display) {
        const chosen = choices(params, display);
        const shown = chosen.among('view', 'View', Object.keys(VIEWS), 'resources', 'view');
        await VIEWS[shown](await data.index(), chosen, display);
    });
})(window.coalescing);
