import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';

// The address of a running service, for "make studio-dev".
const service = process.env.ATELIER_URL ?? 'http://localhost:8080';

// Pages and files that the service answers itself while Vite serves the studio.
const served = [
  '/api',
  '/media',
  '/catalog',
  '/signin',
  '/signout',
  '/signup',
  '/account',
  '/tokens',
  '/devices',
  '/device',
  '/setup',
  '/password',
  '/forgot',
  '/reset',
  '/verify',
  '/drop',
  '/oidc',
  '/invitation',
  '/companies',
  '/docs',
  '/style.css',
  '/styles',
  '/page.js',
  '/wall.jpg',
];

export default defineConfig({
  plugins: [react()],
  build: {
    target: 'es2022',
    // Without these the CSS minifier rewrites light-dark() into variables of its own, and themes break.
    cssTarget: ['chrome123', 'safari17.5', 'firefox121'],
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    sourcemap: false,
    reportCompressedSize: false,
    rollupOptions: {
      // Without this, components of a library that nobody uses stay in the build because memo() might do something.
      treeshake: { manualPureFunctions: ['memo', 'forwardRef'] },
      output: {
        // One script and one style sheet with all that the first view needs, and React, which changes seldom, beside them:
        // each further file would wait for one of the few connections that a browser opens.
        codeSplitting: {
          groups: [
            { name: 'react', test: /node_modules[\\/](react|react-dom|scheduler)[\\/]/ },
            { name: 'studio', tags: ['$initial'] },
            // The canvas of boards and flows.
            { name: 'Canvas', test: /node_modules[\\/](@xyflow|d3-[a-z]+|zustand|classcat)[\\/]/ },
          ],
        },
      },
    },
  },
  server: {
    proxy: Object.fromEntries(served.map((path) => [path, { target: service, changeOrigin: false }])),
  },
  test: { environment: 'node' },
});
