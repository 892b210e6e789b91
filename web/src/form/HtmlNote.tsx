import { useEffect, useRef } from 'react';
import styles from './Form.module.css';

type Sanitizing = HTMLElement & { setHTML?: (html: string) => void };

/** textOf removes the tags of a text for browsers that cannot clean HTML by themselves. */
export function textOf(html: string): string {
  const spaced = html.replace(/<(br|\/p|\/li|\/h\d)[^>]*>/gi, ' ').replace(/<[^>]*>/g, '');
  const signs: Record<string, string> = { '&lt;': '<', '&gt;': '>', '&amp;': '&', '&quot;': '"', '&#39;': "'" };

  return spaced
    .replace(/&(lt|gt|amp|quot|#39);/g, (entity) => signs[entity] ?? entity)
    .replace(/\s+/g, ' ')
    .trim();
}

/** HtmlNote shows a remark that the tool's author wrote as HTML: cleaned by the browser, or else as plain text. */
export function HtmlNote({ content }: { content: string }) {
  const note = useRef<HTMLDivElement>(null);

  useEffect(() => {
    const element = note.current as Sanitizing | null;
    if (element?.setHTML) {
      element.setHTML(content);
    } else if (element) {
      element.textContent = textOf(content);
    }
  }, [content]);

  return <div ref={note} className={styles.note} />;
}
