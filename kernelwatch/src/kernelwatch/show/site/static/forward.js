// The page of commits: an address with the first digits of a commit behind "#" leads to that commit's page.
'use strict';

const links = [...document.querySelectorAll('tbody th a')];

function forward() {
    const {hash} = window.location;
    const found = hash === '' ? undefined : links.find((link) => link.getAttribute('href').startsWith(`commit/${hash.slice(1)}`));
    document.getElementById('unknown').hidden = hash === '' || found !== undefined;
    return found && window.location.replace(found.href);
}

window.addEventListener('hashchange', forward);
forward();
