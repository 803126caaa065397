// Leads addresses with a part behind "#" to where they belong: those of asv's feed to its pages, and commits by their first digits.
'use strict';

const links = [...document.querySelectorAll('tbody th a')];

function forward() {
    const {hash} = window.location;
    if (document.querySelector('main').id === 'index') {
        return hash === '' ? undefined : window.location.replace(`asv.html${hash}`);
    }
    const found = hash === '' ? undefined : links.find((link) => link.getAttribute('href').startsWith(`commit/${hash.slice(1)}`));
    document.getElementById('unknown').hidden = hash === '' || found !== undefined;
    return found && window.location.replace(found.href);
}

window.addEventListener('hashchange', forward);
forward();
