// The charts of noise on the page Details, drawn from the tables that are there.
'use strict';

const SPREADS = [
    'between processes, relative standard deviation', 'within a process, relative standard deviation',
    'threshold: smallest change that is told of',
];

page(function (chosen, display) {
    for (const made of document.querySelectorAll('[data-noise]')) {
        const {textContent: title} = made.querySelector('caption');
        const rows = [...made.querySelectorAll('tbody tr')].map(({cells}) => [...cells].map(({textContent}) => textContent));
        const series = SPREADS.map((name, at) => ({name, points: rows.filter((cells) => cells[1] > 0 && cells[2 + at] !== '–').map((cells) => ({
            x: Number(cells[1]), y: Number(cells[2 + at]), title: `${cells[0]}: ${cells[2 + at]} % ${name}`}))}));
        made.querySelector('.project-chart')?.remove();
        const chart = element('div', {className: 'project-chart'});
        made.prepend(chart);
        scatter(chart, {
            label: `${title}: spread in % by time, three marks a configuration; the table has the values`,
            xTitle: 'median time, µs', yTitle: '% of the time', series,
        });
        chart.append(downloads(title, made));
    }
});
