// Bundle the parts of Observable Plot and D3 that the charts use, without comments: node bundle.js OUTPUT. Pages load one file of half the
// size. Maps, colour schemes, transitions, brushes and D3's own axes, which no chart has, are left out.
'use strict';

const path = require('path');
const esbuild = require('esbuild');

const PLOT = ['areaY', 'axisX', 'axisY', 'barX', 'dot', 'gridX', 'gridY', 'line', 'plot', 'pointer', 'rect', 'ruleX', 'text', 'tickX', 'tip'];
const D3 = ['create', 'max', 'min', 'range', 'symbol', 'symbolCircle', 'symbolCross', 'symbolDiamond', 'symbolDiamond2', 'symbolSquare',
    'symbolStar', 'symbolTriangle', 'symbolWye'];
const ENTRY = `import {${PLOT}} from '@observablehq/plot';\nimport {${D3}} from 'd3';\n` +
    `globalThis.Plot = {${PLOT}};\nglobalThis.d3 = {${D3}};`;

const unused = {name: 'unused', setup: (build) => build.onLoad({filter: /d3-(axis|brush|ease|geo|scale-chromatic|timer|transition|zoom)[/\\](src|dist)[/\\]/}, async (file) => ({
    contents: Object.keys(await import(file.path)).map((name) => `export const ${name} = () => undefined;`).join('\n'),
}))};

esbuild.build({
    stdin: {contents: ENTRY, resolveDir: __dirname}, bundle: true, minify: true, format: 'iife', charset: 'utf8', legalComments: 'none',
    outfile: path.resolve(process.argv[2]), plugins: [unused], logLevel: 'error', treeShaking: true,
});
