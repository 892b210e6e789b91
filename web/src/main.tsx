// The styles of elements come first, so that those of components win over them.
import './styles/fonts.css';
import './styles/tokens.css';
import './styles/base.css';

import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { ApiError } from './api/errors';
import { App } from './app/App';
import { readAhead } from './create/ahead';
import { identityQuery } from './data/account';
import { applyPreferences } from './data/preferences';

applyPreferences();

const cache = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 30_000,
      refetchOnWindowFocus: false,
      retry: (failures, error) => failures < 2 && !(error instanceof ApiError && !error.body.retryable),
    },
  },
});

void cache.prefetchQuery(identityQuery);
readAhead(cache, location.pathname, location.search);

const root = document.getElementById('root');
if (root) {
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={cache}>
        <App />
      </QueryClientProvider>
    </StrictMode>,
  );
}
