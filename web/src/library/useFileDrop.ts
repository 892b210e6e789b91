import { useLayoutEffect, useRef, useState } from 'react';
import { hasFiles } from '../data/dragged';
import { isTyping } from '../ui/keys';

/** useFileDrop takes files of the system that are dropped anywhere on the page or pasted. It returns whether files hover over the page. */
export function useFileDrop(onFiles: (files: File[]) => void): boolean {
  const [over, setOver] = useState(false);
  const latest = useRef(onFiles);
  latest.current = onFiles;

  useLayoutEffect(() => {
    const stop = new AbortController();
    const options = { signal: stop.signal };
    let depth = 0;

    const take = (files: FileList | undefined) => {
      if (files && files.length > 0) {
        latest.current([...files]);
      }
    };
    const enter = (event: DragEvent) => {
      if (hasFiles(event.dataTransfer)) {
        event.preventDefault();
        depth += 1;
        setOver(true);
      }
    };
    const leave = (event: DragEvent) => {
      if (hasFiles(event.dataTransfer)) {
        depth = Math.max(0, depth - 1);
        setOver(depth > 0);
      }
    };
    const drop = (event: DragEvent) => {
      if (hasFiles(event.dataTransfer)) {
        event.preventDefault();
        depth = 0;
        setOver(false);
        take(event.dataTransfer?.files);
      }
    };

    addEventListener('dragenter', enter, options);
    addEventListener('dragleave', leave, options);
    addEventListener('dragover', (event) => hasFiles(event.dataTransfer) && event.preventDefault(), options);
    addEventListener('drop', drop, options);
    addEventListener('paste', (event) => !isTyping(event.target) && take(event.clipboardData?.files), options);
    return () => stop.abort();
  }, []);

  return over;
}
