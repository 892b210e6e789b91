import { useAccount } from '../data/account';
import { text } from '../text/library';
import { useToast } from '../ui/Toast';
import { GrowingShelf, type Shelf } from './shelf';
import { useFileDrop } from './useFileDrop';
import { useSending } from './useSending';

type Options = {
  shelf: Shelf | undefined;
  /** Whether the page shows uploads. */
  shown: boolean;
  onShow: () => void;
};

/** useUploading sends files that are chosen, dropped or pasted, and puts them before the other uploads where these are shown. */
export function useUploading({ shelf, shown, onShow }: Options) {
  const { teamId } = useAccount();
  const toast = useToast();

  const sending = useSending(
    teamId,
    (item) => {
      if (shown && shelf instanceof GrowingShelf) {
        shelf.prepend(item);
      }
    },
    (count) => {
      const action = shown ? undefined : { label: text.showUploads, run: onShow };
      toast({ text: text.uploadedToast(count), action });
    },
  );
  const dropping = useFileDrop(sending.send);

  return { ...sending, dropping };
}
