// What changed with a commit, in words and links: shared by Overview, the page of a commit and Regressions.
'use strict';

(function (coalescing) {
    const {data, view} = coalescing;
    const {element} = view;

    /* Between a number and its unit: no line ends there. */
    const NARROW = '\u202f';

    const overview = () => data.piece('overview');
    const short = (hash) => hash.slice(0, 8);
    const day = (time) => new Date(time).toISOString().slice(0, 10);

    /* A verdict's sign and word; colour is never alone. */
    const SIGNS = {slower: '▲', faster: '▼', mixed: '◆', undecided: '?', acknowledged: '✓', more: '△', fewer: '▽', noted: '+', same: '·'};

    function verdict(name) {
        return element('span', {className: `verdict verdict-${name}`, textContent: `${SIGNS[name]} ${name}`});
    }

    /* A ratio of times as a change: "+4.4 %". */
    function percent(ratio) {
        const change = 100 * (ratio - 1);
        return `${change < 0 ? '−' : '+'}${Math.abs(change).toFixed(Math.abs(change) < 9.95 ? 1 : 0)}${NARROW}%`;
    }

    /* Seconds as people write them. */
    function seconds(value) {
        const [least, unit] = [[1, 's'], [1e-3, 'ms'], [1e-6, 'µs'], [0, 'ns']].find(([from]) => value >= from);
        return `${Number((value / (least || 1e-9)).toPrecision(4))}${NARROW}${unit}`;
    }

    const quantity = (value, unit) => unit === 'seconds' ? seconds(value) : `${Number(value.toPrecision(4))}`;

    function link(text, location, params) {
        const address = $.asv.format_hash_string({
            location: [location], params: Object.fromEntries(Object.entries(params).map(([key, value]) => [key, [value]])),
        });
        return element('a', {href: address, textContent: text});
    }

    const commitLink = (hash, text) => link(text || short(hash), 'commit', {hash: short(hash)});
    const subject = (known, hash) => (known.commits[hash] || {}).subject || 'not in this repository';

    /* The graph of the configuration that changed most. */
    function historyLink(machine, group) {
        const picked = Object.fromEntries(Object.entries(group.largest.params).map(([axis, value]) => [`p-${axis}`, value]));
        return link('History', 'history', {machine, benchmark: group.largest.benchmark, ...picked});
    }

    /* Where a kernel's source is to be read: at a public repository of a known kind, else where commits are shown. */
    function sourceLink(known, change, kernel) {
        const at = change.lines[kernel];
        if (at === undefined) {
            return '';
        }
        const text = `source, line ${at.line}`;
        const repository = /^(https:\/\/git(?:hub|lab)\.com\/.+?\/)(?:-\/)?commits?\/$/.exec(known.commit_url || '');
        return repository === null ? Object.assign(commitLink(change.head, text), {title: at.file}) : element('a', {
            href: `${repository[1]}blob/${change.head}/${at.file}#L${at.line}`, textContent: text, title: at.file,
        });
    }

    const quoted = (known, hash) => element('span', {className: 'subject', textContent: subject(known, hash)});

    /* Which commits may have made a change: of those since the last that was measured, the ones that touch the kernels. */
    function origin(known, change, base) {
        const {count, touching} = change.between[base];
        if (count <= 1 || touching.length === 1 && touching[0].commit === change.head) {
            return [commitLink(change.head), ' ', quoted(known, change.head)];
        }
        const which = touching.length === 0 ? `none of the ${count} commits touches the kernels` :
            touching.length === 1 ? `${short(touching[0].commit)} “${touching[0].subject}” alone touches the kernels` :
                `${touching.length} of these ${count} commits touch the kernels`;
        return [commitLink(base), ' to ', commitLink(change.head), `: ${which}`];
    }

    /* How many configurations changed, and by how much: "4 of 35 slower (mean +6.1 %), 1 faster (−19 %)". */
    function extent(group) {
        const accepted = group.acknowledged && `${group.acknowledged} acknowledged`;
        if (group.times === 0 || group.slower + group.faster + group.undecided + group.acknowledged === 0) {
            const noted = group.noted && `${group.noted} noted`;
            return [group.more && `${group.more} more`, group.fewer && `${group.fewer} fewer`, accepted, noted].filter(Boolean).join(', ');
        }
        const parts = [];
        const of = () => parts.length === 0 ? ` of ${group.times}` : '';
        const mean = (ratio, count) => ratio === null ? '' : ` (${count > 1 ? 'mean ' : ''}${percent(ratio)})`;
        if (group.slower > 0) {
            parts.push(`${group.slower}${of()} slower${mean(group.slowdown, group.slower)}`);
        }
        if (group.faster > 0) {
            parts.push(`${group.faster}${of()} faster${mean(group.speedup, group.faster)}`);
        }
        if (group.undecided > 0) {
            parts.push(`${group.undecided}${of()} undecided`);
        }
        if (accepted) {
            parts.push(`${group.acknowledged}${of()} acknowledged`);
        }
        return parts.join(', ');
    }

    /* The configuration that changed most, with both values. */
    function largest(group) {
        const {params, base, head, unit} = group.largest;
        const where = Object.entries(params).filter(([axis]) => !['kernel', 'flags'].includes(axis)).map(([, value]) => value);
        return `${where.join(' ')}: ${quantity(base, unit)} →\u00a0${quantity(head, unit)}`;
    }

    /* A table whose cells are texts or elements; the first column heads its rows. A row {heading} stands above those that
       follow. */
    function table(caption, headers, rows) {
        const head = element('tr', {}, ...headers.map((text) => element('th', {scope: 'col', textContent: text})));
        const body = rows.map((cells) => cells.heading !== undefined ? element('tr', {className: 'section'}, element(
            'th', {scope: 'rowgroup', colSpan: headers.length}, ...cells.heading)) : element('tr', {}, ...cells.map(function (content, at) {
            const cell = element(at === 0 ? 'th' : 'td', at === 0 ? {scope: 'row'} : {}, content);
            cell.dataset.label = headers[at]; // for phones: overview.css
            return cell;
        })));
        const made = element('table', {}, element('caption', {textContent: caption}),
            element('thead', {}, head), element('tbody', {}, ...body));
        return element('div', {className: 'changes-table', tabIndex: 0, role: 'region', ariaLabel: caption}, made);
    }

    /* The lines and sectors of loads and stores, where all changed alike, in few words. */
    function named(names) {
        const [kinds, units] = [1, 2].map((part) => [...new Set(names.map(
            (name) => (/^(load|store) (sectors|lines)$/.exec(name) || [])[part]))].sort());
        return names.length > 1 && !kinds.includes(undefined) && kinds.length * units.length === names.length
            ? `${units.reverse().join(' and ')} of ${kinds.map((kind) => `${kind}s`).join(' and ')}` : names.join(', ');
    }

    /* What else changed: the machine code, then what rose, then what fell; of a change to the better, what fell comes
       before what rose. Numbers that changed alike are told once. */
    function reasons(group) {
        const written = (text) => text.replaceAll('->', '→').replaceAll(/(^| )-(?=\d)/g, '$1−').replaceAll(' %', `${NARROW}%`);
        const alike = new Map();
        group.evidence.forEach(function ({name, figure, archs, rises}) {
            const on = archs.length === 0 ? '' : ` on ${archs.join(', ')}`;
            const key = figure === '' ? '' : written(figure) + on;
            const found = alike.get(key) || {names: [], rises};
            found.names.push(figure === '' ? name + on : name);
            alike.set(key, found);
        });
        const rank = ([, found]) => found.rises ? 1 : 2;
        const order = ['faster', 'fewer'].includes(group.verdict) ? -1 : 1;
        const numbers = [...alike].filter(([figure]) => figure !== '').sort((one, other) => order * (rank(one) - rank(other)));
        const told = (names) => named(names).replaceAll(/\blines\b/g, 'cache lines');
        const plain = alike.has('') ? alike.get('').names.reverse() : [];
        return [...plain, ...numbers.map(([figure, {names}]) => `${told(names)} ${figure}`)];
    }

    /* The first of these reasons, and which machine counted them where another did. */
    function why(group, most = Infinity) {
        const all = reasons(group);
        const rest = all.length - most;
        const evidence = [...all.slice(0, most), ...(rest > 0 ? [`and ${rest} more`] : [])].join(', ') || 'nothing that was recorded';
        const text = [evidence, ...group.accepted.map((reason) => `acknowledged: ${reason}`)].join('; ');
        return group.counted_on === null ? text : `${text} (counted on ${group.counted_on})`;
    }

    /* One set of flags a line. */
    const flags = (group) => element('span', {className: 'flags', textContent: group.flags.split(', ').join('\n') || '–'});

    const HEADERS = ['kernel', 'flags', 'verdict', 'configurations', 'what else changed', 'changed most', 'see'];

    /* The cells of a group under HEADERS. */
    function cells(known, change, group) {
        return [
            element('span', {}, ...view.breakable(group.kernel)), flags(group), verdict(group.verdict),
            element('span', {className: 'extent', textContent: extent(group)}),
            element('span', {className: 'why', textContent: why(group)}),
            element('span', {className: 'largest', textContent: largest(group)}),
            element('span', {className: 'links'}, historyLink(change.machine, group), ' ',
                sourceLink(known, change, group.kernel)),
        ];
    }

    /* The groups that say something of the machine itself: what is compiled for other architectures comes elsewhere. */
    const own = (change) => change.groups.filter((group) => !group.elsewhere);

    coalescing.changes = {
        overview, short, day, verdict, percent, seconds, link, commitLink, subject, historyLink, sourceLink, origin, quoted,
        extent, largest, why, table, HEADERS, cells, own, SIGNS,
    };
})(window.coalescing);
