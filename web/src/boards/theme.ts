/** watchTheme calls the listener when the page may have got other colours, and returns a function that ends this. */
export function watchTheme(listener: () => void): () => void {
  const theme = new MutationObserver(listener);
  theme.observe(document.documentElement, { attributeFilter: ['data-theme'] });
  const system = matchMedia('(prefers-color-scheme: dark)');
  system.addEventListener('change', listener);

  return () => {
    theme.disconnect();
    system.removeEventListener('change', listener);
  };
}
