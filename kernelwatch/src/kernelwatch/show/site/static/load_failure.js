// asv shows error.html where one of its scripts cannot be loaded. It says so in attributes, which the page's policy
// forbids; a failed load does not bubble, but can be captured on its way down. Data may be missing: asv says that itself.
'use strict';

window.addEventListener('error', function (event) {
    if (event.target instanceof HTMLScriptElement && event.target.dataset.handsOver === undefined) {
        window.location = 'error.html';
    }
}, true);
