import { useSyncExternalStore } from 'react';
import { useAccount } from '../data/account';
import { text } from '../text/boards';
import { ButtonLink, IconButton } from '../ui/Button';
import { Tag } from '../ui/Chip';
import { Menu, type MenuItem } from '../ui/Menu';
import styles from './Board.module.css';
import { useBoard } from './context';
import type { SyncState } from './exchange';
import type { BoardSummary } from './model';
import { personColor } from './presence';

/** BoardHead names the board, leads back to all boards, and says whether everything is stored. */
export function BoardHead({ board, state, onRename }: { board: BoardSummary; state: SyncState; onRename: () => void }) {
  const { linkTo } = useAccount();

  return (
    <header className={styles.head}>
      <ButtonLink kind="bare" icon="chevronLeft" href={linkTo('/boards')} className={styles.back}>
        <span className="unseen">{text.allBoards}</span>
      </ButtonLink>
      <h1>
        <button type="button" className={styles.name} title={text.renameTitle} onClick={onRename}>
          {board.name}
        </button>
      </h1>
      <Saved state={state} />
    </header>
  );
}

function Saved({ state }: { state: SyncState }) {
  const tone = { saved: 'good', saving: undefined, away: 'warn', gone: 'bad', refused: 'bad' } as const;
  const words = {
    saved: text.saved,
    saving: text.saving,
    away: text.away(state.waiting),
    gone: text.refused,
    refused: text.refused,
  };

  return (
    <span role="status" className={styles.saved} title={state.state === 'away' ? text.awayHelp : state.message}>
      <Tag tone={tone[state.state]}>{words[state.state]}</Tag>
    </span>
  );
}

/** BoardCorner has the people at the board, undo and redo, and everything else in a menu. */
export function BoardCorner({ items }: { items: MenuItem[] }) {
  const { editor } = useBoard().session;
  const canUndo = useSyncExternalStore(editor.subscribe, editor.canUndo);
  const canRedo = useSyncExternalStore(editor.subscribe, editor.canRedo);

  return (
    <div className={styles.corner}>
      <Faces />
      <IconButton
        icon="undo"
        label={text.undo}
        className="hide-small"
        disabled={!canUndo}
        onClick={() => editor.undo()}
      />
      <IconButton
        icon="redo"
        label={text.redo}
        className="hide-small"
        disabled={!canRedo}
        onClick={() => editor.redo()}
      />
      <Menu label={text.more} icon="more" items={items} />
    </div>
  );
}

const facesShown = 5;

function Faces() {
  const { me } = useAccount();
  const { presence } = useBoard().session;
  const people = useSyncExternalStore(presence.subscribe, presence.getPeople);

  if (people.length === 0) {
    return null;
  }
  return (
    <>
      <ul className={styles.faces} aria-label={text.people}>
        {people.slice(0, facesShown).map(({ uid, name }) => (
          <li
            key={uid}
            className={styles.face}
            data-color={personColor(uid)}
            title={uid === me.user.uid ? text.you(name) : name}
          >
            <span className="unseen">{uid === me.user.uid ? text.you(name) : name}</span>
            <span aria-hidden="true">{name.slice(0, 2).toUpperCase()}</span>
          </li>
        ))}
        {people.length > facesShown && <li className={styles.face}>+{people.length - facesShown}</li>}
      </ul>
      <i className="hide-small" />
    </>
  );
}
