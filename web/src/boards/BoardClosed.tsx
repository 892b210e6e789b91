import { useAccount } from '../data/account';
import { text } from '../text/boards';
import { Button, ButtonLink } from '../ui/Button';
import { PageHead } from '../ui/PageHead';
import { Empty } from '../ui/States';
import { useRestoreBoard } from './lists';

type Props = {
  boardId: string;
  name: string | undefined;
  /** Why the board may not be seen any more; without it, the board is deleted. */
  refusal: string | undefined;
  onRestored: () => void;
};

/** BoardClosed stands in place of a board that is deleted or may not be seen any more. */
export function BoardClosed({ boardId, name, refusal, onRestored }: Props) {
  const { linkTo } = useAccount();
  const restore = useRestoreBoard();
  const others = <ButtonLink href={linkTo('/boards')}>{text.allBoards}</ButtonLink>;

  if (refusal !== undefined) {
    return (
      <>
        <PageHead title={name ?? text.title} />
        <Empty title={text.refusedTitle} actions={others}>
          {refusal} {text.refusedText}
        </Empty>
      </>
    );
  }
  const actions = (
    <>
      <Button kind="main" onClick={() => void restore({ id: boardId, name: name ?? text.untitled }).then(onRestored)}>
        {text.restore}
      </Button>
      {others}
    </>
  );
  return (
    <>
      <PageHead title={name ?? text.title} />
      <Empty title={text.goneTitle} actions={actions}>
        {text.goneText}
      </Empty>
    </>
  );
}
