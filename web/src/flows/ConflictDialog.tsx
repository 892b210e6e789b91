import { text } from '../text/flows';
import { Button } from '../ui/Button';
import { Dialog } from '../ui/Dialog';

type Props = { open: boolean; onLoad: () => void; onCopy: () => void; onClose: () => void };

/** ConflictDialog says that somebody else has saved the flow meanwhile, and offers both ways on. */
export function ConflictDialog({ open, onLoad, onCopy, onClose }: Props) {
  const actions = (
    <>
      <Button onClick={onLoad}>{text.loadTheirs}</Button>
      <Button kind="main" onClick={onCopy}>
        {text.saveAsCopy}
      </Button>
    </>
  );

  return (
    <Dialog open={open} onClose={onClose} title={text.conflictTitle} actions={actions}>
      <p>{text.conflictText}</p>
    </Dialog>
  );
}
