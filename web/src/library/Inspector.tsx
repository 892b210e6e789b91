import { useQuery } from '@tanstack/react-query';
import { api, dataOf } from '../api/client';
import { ApiError } from '../api/errors';
import { useAccount } from '../data/account';
import { useTools } from '../data/catalog';
import { ErrorFault } from '../data/ErrorFault';
import { useSaveAsFlow } from '../data/flows';
import { inputLink, resultLink, runAgainLink } from '../data/links';
import { text as flowText } from '../text/flows';
import { text } from '../text/library';
import { Button, ButtonLink, IconButton } from '../ui/Button';
import { Icon } from '../ui/Icon';
import { Picture } from '../ui/Picture';
import { Player } from '../ui/Player';
import { Bone, Empty, Waiting } from '../ui/States';
import { useToast } from '../ui/Toast';
import { Facts } from './Facts';
import { InputList } from './InputList';
import styles from './Inspector.module.css';
import { type Item, itemOfResult, itemOfUpload } from './items';
import type { ItemActions } from './useItemActions';
import { Wave } from './Wave';

type Props = {
  id: string;
  kind: Item['kind'];
  /** The item as the list knows it, shown until its details are read. */
  known: Item | undefined;
  actions: ItemActions;
  onPin: (items: Item[]) => void;
  onLarge: () => void;
  onClose: () => void;
  /** Moves to the item before or after this one; undefined if there is none. */
  onStep: ((step: number) => void) | undefined;
};

/** useDetail reads one result with the inputs of its run. */
export function useDetail(id: string, enabled: boolean) {
  const { teamId } = useAccount();

  return useQuery({
    queryKey: ['library', 'item', id],
    enabled,
    queryFn: async () => {
      const params = { path: { library_id: id }, query: { team_id: teamId } };
      return dataOf(await api.GET('/library/{library_id}', { params }));
    },
  });
}

function useUpload(id: string, enabled: boolean) {
  const { teamId } = useAccount();

  return useQuery({
    queryKey: ['upload', id],
    enabled,
    queryFn: async () => {
      const params = { path: { upload_id: id }, query: { team_id: teamId } };
      return dataOf(await api.GET('/uploads/{upload_id}', { params }));
    },
  });
}

/** isGone reports whether the service has no such item, or none that this account may see. */
function isGone(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 404 || error.status === 403);
}

/** Inspector shows one item with everything that is known about it, and what can be done with it. */
export function Inspector({ id, kind, known, actions, onPin, onLarge, onClose, onStep }: Props) {
  const isResult = kind === 'LIBRARY_REF';
  const detail = useDetail(id, isResult);
  const upload = useUpload(id, !isResult);
  const query = isResult ? detail : upload;
  const read = detail.data ? itemOfResult(detail.data) : upload.data && itemOfUpload(upload.data);
  const item = known ?? read;
  const { teamId } = useAccount();
  const tools = useTools(teamId);
  const label = item?.label ?? tools.data?.find((tool) => tool.id === item?.tool_id)?.name ?? text.noPrompt;

  return (
    <div className={styles.inspector}>
      <header className={styles.head}>
        <h2 className={styles.title}>{text.details}</h2>
        <span className="grow" />
        {onStep && (
          <>
            <IconButton icon="chevronLeft" label={text.previous} onClick={() => onStep(-1)} />
            <IconButton icon="chevronRight" label={text.next} onClick={() => onStep(1)} />
          </>
        )}
        {item && <IconButton icon="expand" label={text.wholeScreen} onClick={onLarge} />}
        <IconButton icon="close" label={text.close} onClick={onClose} />
      </header>
      {query.isError && !item && (
        <div className={styles.pad}>
          {isGone(query.error) ? (
            <Empty title={text.goneTitle} actions={<Button onClick={onClose}>{text.showAll}</Button>}>
              {text.gone}
            </Empty>
          ) : (
            <ErrorFault error={query.error} onRetry={() => void query.refetch()} />
          )}
        </div>
      )}
      {!item && query.isPending && (
        <div className={styles.pad}>
          <Waiting>
            <Bone ratio={1} />
            <Bone height={24} />
            <Bone height={34} />
          </Waiting>
        </div>
      )}
      {item && (
        <>
          <Preview item={item} label={label} onLarge={onLarge} />
          <div className={styles.pad}>
            <p className={styles.prompt}>{label}</p>
            {item.note && (
              <p className={styles.note}>
                <Icon name="info" small />
                {item.note}
              </p>
            )}
            <MainActions item={item} />
            <MoreActions item={item} actions={actions} onPin={onPin} />
            <Facts item={item} inputs={detail.data?.inputs} />
            {detail.data && item.tool_id && <InputList inputs={detail.data.inputs} toolId={item.tool_id} />}
            {isResult && detail.isPending && <Bone height={40} />}
          </div>
        </>
      )}
    </div>
  );
}

/** Preview shows the item itself: it plays in place, and a click on a picture shows it large. */
function Preview({ item, label, onLarge }: { item: Item; label: string; onLarge: () => void }) {
  const ratio = item.width && item.height ? Math.max(0.6, item.width / item.height) : 1;

  if (item.type === 'VID') {
    return (
      <div className={styles.big} style={{ aspectRatio: ratio }}>
        <Player kind="VID" src={item.url} poster={item.preview_url} label={label} />
      </div>
    );
  }
  if (item.type === 'AUDIO') {
    return (
      <div className={styles.sound}>
        <Wave id={item.id} />
        <Player kind="AUDIO" src={item.url} label={label} />
      </div>
    );
  }
  if (item.type === 'ASSET_3D') {
    return (
      <div className={styles.big}>
        <Picture key={item.id} src={item.thumb_url} alt={label} blurhash={item.blurhash} ratio={1} eager />
        <p className={styles.caption}>{text.model3d}</p>
      </div>
    );
  }
  return (
    <button type="button" className={styles.big} aria-label={text.wholeScreen} onClick={onLarge}>
      <Picture
        key={item.id}
        src={item.url}
        alt={label}
        blurhash={item.blurhash}
        ratio={ratio}
        fit="contain"
        eager
        draggable={false}
      />
    </button>
  );
}

function MainActions({ item }: { item: Item }) {
  const { teamId } = useAccount();

  return (
    <div className={styles.pair}>
      <ButtonLink kind="main" icon="wand" href={inputLink(item.kind, item.id, teamId)}>
        {text.useAsInput}
      </ButtonLink>
      {item.tool_id && item.request_id && (
        <ButtonLink icon="repeat" href={runAgainLink(item.tool_id, item.request_id, teamId)}>
          {text.runAgain}
        </ButtonLink>
      )}
    </div>
  );
}

type MoreProps = { item: Item; actions: ItemActions; onPin: (items: Item[]) => void };

function MoreActions({ item, actions, onPin }: MoreProps) {
  const { teamId } = useAccount();
  const toast = useToast();
  const { saveAsFlow, drafting } = useSaveAsFlow();

  const copyLink = async () => {
    const path = item.kind === 'LIBRARY_REF' ? resultLink(item.id, teamId) : `${location.pathname}${location.search}`;
    await navigator.clipboard.writeText(new URL(path, location.href).href);
    toast({ text: text.linkCopied });
  };

  return (
    <div className={styles.more}>
      {item.kind === 'LIBRARY_REF' && (
        <IconButton
          icon="heart"
          iconFull={item.favorited}
          on={item.favorited}
          label={item.favorited ? text.unfavorite : text.favorite}
          aria-pressed={item.favorited}
          onClick={() => void actions.setFavorite([item], !item.favorited)}
        />
      )}
      <IconButton icon="download" label={text.download} onClick={() => void actions.download([item])} />
      <IconButton icon="board" label={text.pin} onClick={() => onPin([item])} />
      <IconButton icon="link" label={text.copyLink} onClick={() => void copyLink()} />
      {item.kind === 'LIBRARY_REF' && (
        <IconButton icon="flow" label={flowText.saveAsFlow} disabled={drafting} onClick={() => saveAsFlow(item.id)} />
      )}
      <span className="grow" />
      <IconButton icon="trash" label={text.delete} onClick={() => actions.remove([item])} />
    </div>
  );
}

/** InspectorHint stands where details will be. */
export function InspectorHint() {
  return (
    <div className={styles.hint}>
      <Icon name="image" />
      <p>{text.hint}</p>
      <p className="small">{text.hintKeys}</p>
    </div>
  );
}
