// The first page: what got slower last and why, what changed lately, and how fast each kernel is.
'use strict';

// The address without a page is this one; asv's grid is "#/".
if (window.location.hash === '') {
    window.history.replaceState(null, '', '#overview');
}

$(document).ready(function () {
    const {view, choices, changes} = window.coalescing;
    const {element} = view;

    /* Commits with changes that are told in full, and columns of the heat map. */
    const TOLD = 4;
    const COLUMNS = 24;
    /* What is told of the reasons before a reader asks for all. */
    const REASONS = 4;

    async function render(index, params, display) {
        const known = await changes.overview();
        const names = Object.keys(known.machines).filter((name) => known.machines[name].newest !== null);
        if (names.length === 0) {
            view.paragraph(display, 'Nothing has been measured yet: make bench');
            return;
        }
        const newestFirst = [...known.changes].sort((one, other) => time(known, other.head) - time(known, one.head));
        leads(display, known, newestFirst);
        machines(display, known, names, newestFirst);
        lately(display, known, newestFirst);
        display.append(element('h2', {textContent: 'Kernels'}));
        const chosen = choices('overview', params, display);
        const timed = (name) => known.machines[name].tiles.reduce((sum, tile) => sum + tile.rates.length, 0);
        const name = chosen.among(
            'machine', 'Machine', [...names].sort((one, other) => timed(other) - timed(one)), undefined, 'results of machine');
        chosen.show();
        tiles(display, known, name);
        heatMap(display, known, name);
    }

    const time = (known, hash) => known.commits[hash].measured;

    /* The answers to "what got slower last, and why?" and to the same of faster. */
    function leads(display, known, newestFirst) {
        const box = element('div', {className: 'leads'});
        for (const [word, title, size] of [
            ['slower', 'Got slower last', (group) => group.cost], ['faster', 'Got faster last', (group) => group.faster],
        ]) {
            const change = newestFirst.find((one) => changes.own(one).some((group) => group[word] > 0));
            box.append(change === undefined ? element('section', {className: 'lead'}, element('h2', {textContent: title}),
                element('p', {textContent: `No time became ${word} between two measured commits.`})) :
                lead(known, change, word, title, size));
        }
        display.append(box);
    }

    function lead(known, change, word, title, size) {
        const found = changes.own(change).filter((group) => group[word] > 0).sort((one, other) => size(other) - size(one));
        const [group, ...others] = found;
        const facts = element('dl', {});
        const fact = (name, ...content) => facts.append(element('dt', {textContent: name}), element('dd', {}, ...content));
        fact('why', changes.why(group, REASONS));
        fact('commit', ...changes.origin(known, change, group.base));
        fact('where', `${change.machine}, ${changes.day(time(known, change.head))}`);
        if (group.verdict !== 'mixed' || word === 'slower') {
            fact('largest', changes.largest(group));
        }
        const more = others.length === 0 ? [] : [' · ', changes.commitLink(
            change.head, `${others.length} more ${others.length === 1 ? 'row' : 'rows'}`)];
        return element('section', {className: `lead lead-${word}`},
            element('h2', {textContent: title}),
            element('p', {className: 'what'}, element('strong', {}, ...view.breakable(group.kernel)), ` ${group.flags} `,
                changes.verdict(group.verdict), ` ${changes.extent(group)}`), facts,
            element('p', {className: 'links'}, changes.historyLink(change.machine, group), ' · ',
                changes.sourceLink(known, change, group.kernel), ' · ', changes.commitLink(change.head, 'the whole commit'),
                ...more));
    }

    /* The newest commit of each machine, and what the review said of it. */
    function machines(display, known, names, newestFirst) {
        display.append(element('h2', {textContent: 'Newest commit of each machine'}));
        const when = (name) => time(known, known.machines[name].newest);
        const timed = (name) => known.machines[name].tiles.length;
        const headers = ['machine', 'commit', 'times', 'kernels', 'subject'];
        display.append(changes.table('The newest measured commit of each machine', headers,
            [...names].sort((one, other) => when(other) - when(one) || timed(other) - timed(one)).map(function (name) {
                const {newest} = known.machines[name];
                const change = newestFirst.find((one) => one.machine === name && one.head === newest);
                const commit = element('span', {className: 'flags'}, changes.commitLink(newest), ` ${changes.day(when(name))}`);
                return [name, commit, element('span', {className: 'flags', textContent: timesOf(change)}), summary(change), changes.quoted(known, newest)];
            })));
    }

    /* How many of a machine's times changed with its newest commit. */
    function timesOf(change) {
        if (change === undefined || change.judged === 0) {
            return 'none taken';
        }
        const states = Object.values(change.kernels);
        const changed = ['slower', 'faster', 'undecided'].map(
            (word) => [states.reduce((sum, state) => sum + state[word], 0), word]).filter(([count]) => count > 0);
        return `of ${change.judged}: ${changed.map((one) => one.join(' ')).join(', ') || 'all the same'}`;
    }

    function summary(change) {
        if (change === undefined || change.base === null) {
            return 'nothing to compare with';
        }
        const kernels = Object.entries(change.kernels).filter(([, state]) => state.verdict !== 'same');
        const same = Object.keys(change.kernels).length - kernels.length;
        const list = element('span', {className: 'links'});
        kernels.forEach(([kernel, state]) => list.append(element(
            'span', {className: 'state'}, changes.verdict(state.verdict), ' ', ...view.breakable(kernel)), ' '));
        list.append(`${kernels.length > 0 ? '· ' : ''}${same} ${same === 1 ? 'kernel' : 'kernels'} the same`);
        return list;
    }

    /* The newest commits that changed something, each with its rows of all machines. */
    function lately(display, known, newestFirst) {
        display.append(element('h2', {textContent: 'What changed lately'}));
        const heads = [...new Set(newestFirst.filter((change) => changes.own(change).length > 0).map((change) => change.head))];
        if (heads.length === 0) {
            view.paragraph(display, `No change of ${100 * known.at_least} % or more between two measured commits.`);
            return;
        }
        const rows = heads.slice(0, TOLD).flatMap(function (head) {
            const found = newestFirst.filter((change) => change.head === head).flatMap((change) => changes.own(change).filter(
                (group) => !group.told).map((group) => ({change, group})));
            const day = ` ${changes.day(time(known, head))}`;
            return [...new Set(found.map(({group}) => group.base))].flatMap(function (base) {
                const own = found.filter(({group}) => group.base === base);
                return [{heading: [...changes.origin(known, own[0].change, base), element(
                    'span', {className: 'faint', textContent: day})]}, ...own.map(function ({change, group}) {
                    const [kernel, ...rest] = changes.cells(known, change, group);
                    return [kernel, change.machine, ...rest];
                })];
            });
        });
        const {slower, faster, more, fewer, mixed, noted} = changes.SIGNS;
        view.paragraph(display, 'Every commit against the last before it that measured the same. ' +
            `Times are ${slower} slower or ${faster} faster; numbers that were compiled or counted are ${more} more or ${fewer} fewer; ` +
            `${mixed} mixed is both; ${noted} noted rose and decides nothing. What else changed is a mean over configurations; in brackets, how many of them changed.`);
        display.append(changes.table('What changed lately', ['kernel', 'machine', ...changes.HEADERS.slice(1)], rows));
        display.append(element('p', {}, changes.link(
            'All changes, newest first', 'regressed', {show: 'every change', order: 'newest first'})));
    }

    /* A tile a kernel: how much of a copy, or of the peak, and how the rate went. */
    function tiles(display, known, name) {
        const found = known.machines[name].tiles;
        if (found.length === 0) {
            view.paragraph(display, `${name} took no times. What it counted and compiled is below, and on Transactions and ` +
                'Resources.');
            return;
        }
        const box = element('div', {className: 'tiles'});
        display.append(element('p', {textContent: 'At one size, dtype and flags each, on the newest commit that timed it. ' +
            'A copy moves the same bytes; the peak is the theoretical bandwidth of the memory. ' +
            'The line is the rate by commit, from 0.'}), box);
        found.forEach((tile) => box.append(tileOf(name, tile)));
    }

    function tileOf(machine, tile) {
        const rates = tile.rates.map(([commit, rate]) => ({commit, rate}));
        const rate = `${number(rates.at(-1).rate)} ${tile.unit}`;
        const big = tile.copy !== null ? [`${number(tile.copy)} %`, 'of a copy'] :
            tile.peak !== null ? [`${number(tile.peak)} %`, 'of peak'] : [number(rates.at(-1).rate), tile.unit];
        const small = tile.copy === null && tile.peak === null ? '' : [rate, tile.copy !== null && tile.peak !== null &&
            `${number(tile.peak)} % of peak`].filter(Boolean).join(' · ');
        const {kernel, ...picked} = tile.params;
        // Of a matrix's size, its dtype and flags the value says what it is; of an offset it does not.
        const told = Object.entries(picked).map(([axis, value]) => /^\d+$/.test(value) ? `${axis} ${value}` : value);
        const heading = changes.historyLink(machine, {largest: {benchmark: tile.benchmark, params: tile.params}});
        heading.replaceChildren(...view.breakable(tile.kernel));
        return element('section', {className: 'tile'}, element('h3', {}, heading),
            element('p', {className: 'big'}, element('strong', {textContent: big[0]}), ` ${big[1]}`),
            element('p', {className: 'small', textContent: small}),
            element('p', {className: 'small', textContent: told.join(', ')}), sparkline(rates, tile));
    }

    const number = (value) => value >= 100 ? value.toFixed(0) : String(Number(value.toPrecision(value < 1 ? 1 : 3)));

    /* Rates by commit, oldest first, from 0. */
    function sparkline(rates, tile) {
        const most = Math.max(...rates.map(({rate}) => rate));
        const [width, height, edge] = [200, 44, 5];
        const x = (at) => rates.length === 1 ? width / 2 : edge + at * (width - 2 * edge) / (rates.length - 1);
        const y = (rate) => height - edge - rate / most * (height - 2 * edge);
        const made = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
        const add = function (name, attributes) {
            const child = document.createElementNS(made.namespaceURI, name);
            Object.entries(attributes).forEach(([key, value]) => child.setAttribute(key, value));
            made.append(child);
            return child;
        };
        const [first, last] = [rates[0].rate, rates.at(-1).rate].map(number);
        const label = `${tile.kernel}: ${first} to ${last} ${tile.unit} over ${rates.length} commits`;
        Object.entries({viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': label, class: 'sparkline'}).forEach(
            ([key, value]) => made.setAttribute(key, value));
        add('line', {x1: 0, x2: width, y1: height - 1, y2: height - 1});
        add('polyline', {points: rates.map(({rate}, at) => `${x(at)},${y(rate)}`).join(' ')});
        rates.forEach(function ({commit, rate}, at) {
            const title = document.createElementNS(made.namespaceURI, 'title');
            title.textContent = `${changes.short(commit)}: ${number(rate)} ${tile.unit}`;
            add('circle', {cx: x(at), cy: y(rate), r: at === rates.length - 1 ? 4 : 2.5}).append(title);
        });
        return made;
    }

    /* Kernels by commits, newest left, coloured by the verdict; every cell leads to the commit. */
    function heatMap(display, known, name) {
        const found = known.changes.filter((change) => change.machine === name && change.base !== null).reverse().slice(0, COLUMNS);
        const changed = (state) => state !== undefined && state.verdict !== 'same';
        const states = (kernel) => found.filter((change) => changed(change.kernels[kernel])).length;
        const kernels = [...new Set(found.flatMap((change) => Object.keys(change.kernels)))].sort(
            (one, other) => states(other) - states(one) || (one < other ? -1 : 1));
        if (kernels.length === 0) {
            view.paragraph(display, `No two commits on ${name} measured the same: there is nothing to compare.`);
            return;
        }
        display.append(element('h2', {textContent: 'Verdicts by kernel and commit'}));
        display.append(element('p', {textContent: 'Newest commit on the left. Of times, the mean change of all ' +
            'configurations; of counts, how many changed. Fewer transactions, instructions and registers are better.'}));
        const head = element('tr', {}, element('th', {scope: 'col', textContent: 'kernel'}), ...found.map((change) => element(
            'th', {scope: 'col'}, changes.commitLink(change.head))));
        const rows = kernels.map((kernel) => element('tr', {}, element('th', {scope: 'row', textContent: kernel}),
            ...found.map((change) => cell(known, change, change.kernels[kernel]))));
        const caption = `Verdicts on ${name}, by kernel and commit`;
        display.append(element('div', {className: 'heat', tabIndex: 0, role: 'region', ariaLabel: caption}, element('table', {},
            element('caption', {textContent: caption}), element('thead', {}, head), element('tbody', {}, ...rows))));
        display.append(element('p', {className: 'key'}, ...Object.keys(changes.SIGNS).map(changes.verdict)));
    }

    function cell(known, change, state) {
        if (state === undefined) {
            return element('td', {className: 'absent', textContent: ' ', title: 'not measured'});
        }
        const timed = state.slower + state.faster > 0;
        const text = state.verdict === 'same' ? '' : timed ? changes.percent(state.ratio) : `${state.more + state.fewer + state.acknowledged + state.noted}`;
        const extent = changes.extent({...state, slowdown: null, speedup: null}) || 'same';
        return element('td', {
            className: `verdict-${state.verdict}`,
            title: `${changes.subject(known, change.head)}: ${extent}`,
            textContent: `${changes.SIGNS[state.verdict]} ${text}`,
        });
    }

    view.register('overview', 'Overview', render);
});
