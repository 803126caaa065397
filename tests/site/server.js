// A folder served on this host alone, and a browser that can reach nothing else.
'use strict';

const fs = require('fs');
const http = require('http');
const path = require('path');
const { chromium } = require('playwright-core');

const TYPES = {
    '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.json': 'application/json', '.png': 'image/png',
    '.ico': 'image/x-icon', '.xml': 'application/atom+xml',
};

function serve(folder) {
    const server = http.createServer(function (request, response) {
        const wanted = decodeURIComponent(new URL(request.url, 'http://host').pathname);
        const file = path.join(folder, wanted.endsWith('/') ? wanted + 'index.html' : wanted);
        if (!file.startsWith(folder) || !fs.existsSync(file)) {
            response.writeHead(404).end();
            return;
        }
        response.writeHead(200, {'content-type': TYPES[path.extname(file)] || 'application/octet-stream'});
        response.end(fs.readFileSync(file));
    });
    return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}

function launch() {
    return chromium.launch({
        executablePath: process.env.CHROMIUM,
        args: [
            '--no-sandbox', '--disable-gpu', '--disable-background-networking',
            '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
        ],
    });
}

/* A page, and what went wrong on it: console errors, exceptions, failed and refused requests. */
async function open(browser, options) {
    const context = await browser.newContext({viewport: {width: 1300, height: 900}, ...options});
    const page = await context.newPage();
    page.setDefaultTimeout(60000); // asv lists thousands of series, and the host may be busy
    const problems = [];
    page.on('console', (message) => message.type() === 'error' && problems.push('console: ' + message.text()));
    page.on('pageerror', (error) => problems.push('exception: ' + error.message));
    // The icon comes last: on a busy host the page is left before it, which aborts it.
    const left = (request) => request.failure().errorText === 'net::ERR_ABORTED' && request.url().endsWith('.ico');
    page.on('requestfailed', (request) => left(request)
        || problems.push(`failed: ${request.url()} (${request.failure().errorText})`));
    page.on('response', (response) => response.status() >= 400 && problems.push(`${response.status()}: ${response.url()}`));
    return {page, problems};
}

module.exports = {serve, launch, open};
