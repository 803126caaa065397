// Data from beside the page, as scripts that hand it over: a page that was opened as a file may load nothing else.
'use strict';

/* Called by the script that is being loaded. */
function arrived(text) {
    document.currentScript.received = JSON.parse(text);
}

/* The promise of what a script hands over. */
function load(url) {
    return new Promise(function (resolve, reject) {
        const script = Object.assign(document.createElement('script'), {src: url});
        script.onload = script.onerror = function () {
            script.remove();
            return script.received === undefined ? reject(new Error(url)) : resolve(script.received);
        };
        document.head.append(script);
    });
}
