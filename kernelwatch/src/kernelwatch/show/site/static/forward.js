// Leads addresses with a part behind "#" to where they belong: those of asv's pages, of this site before it had a file a page,
// and of commits by their first digits.
'use strict';

(function () {
    const {hash} = window.location;
    const [, page, choices = ''] = /^#([a-z]+)(?:\?(.*))?$/.exec(hash) || [];
    const VIEWS = {resources: 'resources', compilers: 'compilers', noise: 'noise'};
    const go = (address) => window.location.replace(address);

    if (document.querySelector('main').id === 'index') {
        if (page === 'commit') {
            go(`commit.html#${new URLSearchParams(choices).get('hash') || ''}`);
        } else if (VIEWS[page] !== undefined) {
            go(`details.html#view=${VIEWS[page]}&${choices}`);
        } else if (['bandwidth', 'history', 'transactions', 'regressed'].includes(page)) {
            go(`${page}.html#${choices}`);
        } else if (hash !== '' && page !== 'overview') {
            go(`asv.html${hash}`);
        }
        return;
    }

    const links = [...document.querySelectorAll('tbody th a')];
    const find = function () {
        const start = window.location.hash.slice(1);
        const found = start === '' ? undefined : links.find((link) => link.getAttribute('href').startsWith(`commit/${start}`));
        document.getElementById('unknown').hidden = start === '' || found !== undefined;
        if (found !== undefined) {
            window.location.replace(found.href);
        }
    };
    window.addEventListener('hashchange', find);
    find();
})();
