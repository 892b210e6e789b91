import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import { api, dataOf } from '../api/client';
import { useAccount } from '../data/account';
import { ErrorFault, messageOf } from '../data/ErrorFault';
import { useSearchValues } from '../data/search';
import { text } from '../text/boards';
import { text as shared } from '../text/shared';
import { Button } from '../ui/Button';
import { averageColor } from '../ui/blurhash';
import { formatAgo } from '../ui/format';
import { Icon } from '../ui/Icon';
import { Menu } from '../ui/Menu';
import { PageHead } from '../ui/PageHead';
import { Bone, Empty, Waiting } from '../ui/States';
import { useToast } from '../ui/Toast';
import { boundsOf } from './arrange';
import styles from './BoardList.module.css';
import { boardsKey, useBoards, useDeleteBoard, useRestoreBoard } from './lists';
import { type BoardSummary, isSection, showNode, sizeOf } from './model';
import { RenameDialog } from './RenameDialog';

/** BoardList shows the boards of the account as cards, and with `?deleted=true` those that can be restored. */
export default function BoardList() {
  const { teamId, linkTo } = useAccount();
  const [search, setSearch] = useSearchValues();
  const deleted = search.get('deleted') === 'true';
  const boards = useBoards(teamId, deleted);
  const cache = useQueryClient();
  const toast = useToast();
  const [, navigate] = useLocation();
  const [renaming, setRenaming] = useState<BoardSummary>();
  const [busy, setBusy] = useState(false);
  const all = boards.data?.pages.flatMap((page) => page.data) ?? [];

  const create = async () => {
    setBusy(true);
    try {
      const params = { query: { team_id: teamId } };
      const board = dataOf(await api.POST('/boards', { params, body: { name: text.untitled } }));
      void cache.invalidateQueries({ queryKey: boardsKey(teamId) });
      navigate(linkTo(`/boards/${board.id}`));
    } catch (error) {
      toast({ text: messageOf(error), seconds: 12 });
    }
    setBusy(false);
  };

  const newButton = (
    <Button kind="main" icon="plus" disabled={busy} onClick={() => void create()}>
      {text.newBoard}
    </Button>
  );

  return (
    <div className={styles.page}>
      <PageHead title={deleted ? text.deletedTitle : text.title}>
        <span className="grow" />
        <Button
          kind="bare"
          icon={deleted ? 'board' : 'trash'}
          onClick={() => setSearch({ deleted: deleted ? undefined : 'true' }, false)}
        >
          {deleted ? text.showBoards : text.showDeleted}
        </Button>
        {!deleted && newButton}
      </PageHead>
      {deleted && <p className={styles.hint}>{text.deletedNote}</p>}
      {boards.isError && !boards.data && <ErrorFault error={boards.error} onRetry={() => void boards.refetch()} />}
      {boards.isPending && (
        <Waiting>
          <div className={styles.grid}>
            {Array.from({ length: 6 }, (_, at) => (
              <Bone key={at} ratio={1.25} />
            ))}
          </div>
        </Waiting>
      )}
      {boards.isSuccess && all.length === 0 && (
        <Empty title={deleted ? text.deletedEmpty : text.emptyTitle} actions={deleted ? undefined : newButton}>
          {deleted ? text.deletedEmptyText : text.emptyText}
        </Empty>
      )}
      <ul className={styles.grid}>
        {all.map((board) => (
          <Card key={board.id} board={board} onRename={() => setRenaming(board)} />
        ))}
      </ul>
      {boards.hasNextPage && (
        <p className={styles.more}>
          <Button disabled={boards.isFetchingNextPage} onClick={() => void boards.fetchNextPage()}>
            {shared.more}
          </Button>
        </p>
      )}
      {renaming && <RenameDialog board={renaming} open onClose={() => setRenaming(undefined)} />}
    </div>
  );
}

function Card({ board, onRename }: { board: BoardSummary; onRename: () => void }) {
  const { linkTo } = useAccount();
  const deleteBoard = useDeleteBoard();
  const restore = useRestoreBoard();

  if (board.deleted) {
    return (
      <li className={styles.card}>
        <div className={styles.face} />
        <div className={styles.foot}>
          <span className="grow">
            <b className={styles.name}>{board.name}</b>
            <span className="small soft">{text.deletedOn(formatAgo(board.deleted))}</span>
          </span>
          <Button small icon="undo" onClick={() => void restore(board)}>
            {text.restore}
          </Button>
        </div>
      </li>
    );
  }
  return (
    <li className={styles.card}>
      <Link href={linkTo(`/boards/${board.id}`)} className={styles.link} aria-label={text.open(board.name)}>
        <Face board={board} />
      </Link>
      <div className={styles.foot}>
        <span className="grow">
          <b className={styles.name}>{board.name}</b>
          <span className="small soft num">{text.boardNote(board.node_count, formatAgo(board.updated))}</span>
        </span>
        <Menu
          label={text.menuOf(board.name)}
          icon="more"
          items={[
            { label: text.rename, icon: 'text', onSelect: onRename },
            { label: text.remove, icon: 'trash', danger: true, onSelect: () => void deleteBoard(board) },
          ]}
        />
      </div>
    </li>
  );
}

const faceNodes = 24;

/** Face is a small picture of a board: its first nodes where they lie. */
function Face({ board }: { board: BoardSummary }) {
  const { teamId } = useAccount();
  const page = useQuery({
    queryKey: ['board-face', board.id, board.revision],
    enabled: board.node_count > 0,
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async () => {
      const params = { path: { board_id: board.id }, query: { team_id: teamId, limit: faceNodes } };
      return dataOf(await api.GET('/boards/{board_id}', { params })).nodes;
    },
  });
  const nodes = (page.data ?? []).map((node) => showNode(node.id, node)).sort((a, b) => a.z - b.z);
  const boxes = nodes.map((node) => ({ ...sizeOf(node), x: node.x, y: node.y, height: sizeOf(node).height ?? 60 }));
  const around = boundsOf(boxes);
  const side = Math.max(around.width, around.height * 1.6, 1) * 1.12;

  return (
    <div className={styles.face} aria-hidden="true">
      {nodes.length === 0 && <Icon name="board" />}
      {nodes.map((node, at) => {
        const box = boxes[at];
        const source = node.item?.thumb_url ?? node.item?.preview_url;
        const middle = { x: around.x + around.width / 2, y: around.y + around.height / 2 };
        const style = box && {
          left: `${50 + ((box.x - middle.x) / side) * 100}%`,
          top: `${50 + (((box.y - middle.y) * 1.6) / side) * 100}%`,
          width: `${(box.width / side) * 100}%`,
          height: `${((box.height * 1.6) / side) * 100}%`,
          background: node.item?.blurhash ? averageColor(node.item.blurhash) : undefined,
        };
        const kind = isSection(node) ? 'section' : node.kind === 'TEXT' ? 'text' : 'media';
        return (
          <span key={node.key} className={styles.piece} data-kind={kind} style={style}>
            {source && <img src={source} alt="" loading="lazy" decoding="async" />}
          </span>
        );
      })}
    </div>
  );
}
