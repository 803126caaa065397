// Every test in one browser, which takes seconds to start.
'use strict';

for (const file of ['overview', 'pages', 'values']) {
    require(`./${file}.test.js`);
}
