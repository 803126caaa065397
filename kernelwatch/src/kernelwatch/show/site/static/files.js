// Data from beside the page, as scripts that hand it over: a page that was opened as a file may load nothing else.
'use strict';

window.coalescing = {};

(function (coalescing) {
    /* Called by the script that is being loaded. */
    function arrived(text) {
        document.currentScript.received = JSON.parse(text);
    }

    /* The promise of what a script hands over. */
    function load(url) {
        return new Promise(function (resolve, reject) {
            const script = document.createElement('script');
            script.onload = function () {
                script.remove();
                return script.received === undefined ? reject(new Error(url)) : resolve(script.received);
            };
            script.onerror = function () {
                script.remove();
                reject(new Error(url));
            };
            script.src = url;
            document.head.append(script);
        });
    }

    coalescing.files = {arrived, load};
})(window.coalescing);
