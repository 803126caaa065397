// asv shows error.html where one of its scripts cannot be loaded. It says so in attributes, which the page's policy
// forbids; a failed load does not bubble, but can be captured on its way down.
'use strict';

window.addEventListener('error', function (event) {
    if (event.target instanceof HTMLScriptElement) {
        window.location = 'error.html';
    }
}, true);

// Opened as a file, the page may not read the data beside it, and asv would blame the web server.
if (window.location.protocol === 'file:') {
    document.addEventListener('DOMContentLoaded', function () {
        const notice = document.createElement('p');
        notice.className = 'project-file-notice';
        notice.textContent = 'Browsers let no page read the files beside it. Serve this folder, for example with: ' +
            'python3 -m http.server --bind 127.0.0.1';
        document.body.prepend(notice);
    });
}
