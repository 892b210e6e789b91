import { ReactFlowProvider } from '@xyflow/react';
import { Suspense, useEffect, useState } from 'react';
import { useAccount } from '../data/account';
import { ErrorFault } from '../data/ErrorFault';
import { text } from '../text/boards';
import { ButtonLink } from '../ui/Button';
import { part } from '../ui/part';
import { Waiting } from '../ui/States';
import { useToast } from '../ui/Toast';
import styles from './Board.module.css';
import { BoardTable } from './BoardTable';
import type { SyncState } from './exchange';
import type { BoardSummary } from './model';
import { BoardSession } from './session';

const BoardClosed = part(() => import('./BoardClosed').then(({ BoardClosed }) => ({ default: BoardClosed })));

/** Board opens a board, and keeps it open while the page is shown. */
export default function Board({ boardId }: { boardId: string }) {
  const { teamId, me } = useAccount();
  const { linkTo } = useAccount();
  const toast = useToast();
  const [session, setSession] = useState<BoardSession>();
  const [board, setBoard] = useState<BoardSummary>();
  const [state, setState] = useState<SyncState>({ state: 'saved', waiting: 0 });
  const [error, setError] = useState<unknown>();
  const [attempt, setAttempt] = useState(0);

  // biome-ignore lint/correctness/useExhaustiveDependencies: another attempt opens the board anew.
  useEffect(() => {
    const opened = new BoardSession({
      boardId,
      teamId,
      uid: me.user.uid,
      onBoard: setBoard,
      onState: setState,
      onNotice: (notice) => {
        const name = notice.kind === 'kept' ? (opened.presence.nameOf(notice.uid) ?? text.somebody) : '';
        toast({ text: notice.kind === 'kept' ? text.kept(name) : text.dropped(notice.message), seconds: 10 });
      },
    });
    let closed = false;
    setError(undefined);
    opened
      .open()
      .then(() => !closed && setSession(opened))
      .catch((problem) => !closed && setError(problem));

    return () => {
      closed = true;
      setSession(undefined);
      opened.close();
    };
  }, [boardId, teamId, me.user.uid, toast, attempt]);

  useEffect(() => {
    const before = document.title;
    if (board) {
      document.title = `${board.name} · Atelier`;
    }
    return () => {
      document.title = before;
    };
  }, [board]);

  if (board?.deleted || state.state === 'gone' || state.state === 'refused') {
    const again = () => {
      setBoard(undefined);
      setState({ state: 'saved', waiting: 0 });
      setAttempt(attempt + 1);
    };
    return (
      <Suspense>
        <BoardClosed
          boardId={boardId}
          name={board?.name}
          refusal={!board?.deleted && state.state === 'refused' ? (state.message ?? '') : undefined}
          onRestored={again}
        />
      </Suspense>
    );
  }
  if (error !== undefined) {
    return (
      <div className={styles.fault}>
        <h1 className="unseen">{text.title}</h1>
        <ErrorFault error={error} onRetry={() => setAttempt(attempt + 1)} />
        <ButtonLink href={linkTo('/boards')}>{text.allBoards}</ButtonLink>
      </div>
    );
  }
  if (!session || !board) {
    return (
      <div className={styles.reading}>
        <Waiting label={text.reading} />
      </div>
    );
  }
  return (
    <ReactFlowProvider key={attempt}>
      <BoardTable session={session} board={board} state={state} />
    </ReactFlowProvider>
  );
}
