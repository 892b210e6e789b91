import { useAccount } from '../data/account';
import { text } from '../text/flows';
import { Button, ButtonLink, IconButton } from '../ui/Button';
import { Tag } from '../ui/Chip';
import { Menu } from '../ui/Menu';
import { useFlowEditor } from './context';
import styles from './Editor.module.css';
import { longestName } from './model';
import type { Edits } from './useEdits';
import type { Saving } from './useSaving';

type Props = {
  edits: Edits;
  saving: Saving;
  onSave: () => void;
  onSaveCopy: () => void;
  onRun: () => void;
  onVersions: () => void;
};

/** EditorHead names the flow, says what it costs and whether it is stored, and has what is done with all of it. */
export function EditorHead({ edits, saving, onSave, onSaveCopy, onRun, onVersions }: Props) {
  const { linkTo } = useAccount();
  const { draft, check, change, select } = useFlowEditor();
  const { flow, dirty, busy } = saving;
  const blocked = draft.steps.length === 0 || busy;
  const count = check.problems.length;
  const stored = flow !== undefined && !dirty;

  return (
    <header className={styles.head}>
      <ButtonLink kind="bare" icon="chevronLeft" href={linkTo('/flows')} className={styles.back}>
        <span className="unseen">{text.allFlows}</span>
      </ButtonLink>
      <h1 className="unseen">{draft.name || text.untitled}</h1>
      <input
        className={styles.name}
        aria-label={text.nameLabel}
        placeholder={text.untitled}
        maxLength={longestName}
        value={draft.name}
        onChange={(event) => change((before) => ({ ...before, name: event.target.value }), 'name')}
      />
      <span role="status">
        <Tag tone={stored ? 'good' : undefined}>{busy ? text.saving : stored ? text.saved : text.unsaved}</Tag>
      </span>
      <span className="grow" />
      <span role="status" className={styles.count}>
        {draft.steps.length > 0 && (
          <Button small kind="bare" icon={count > 0 ? 'alert' : 'check'} onClick={() => select(undefined)}>
            {count > 0 ? text.problems(count) : check.waiting ? text.checking : text.noProblems}
          </Button>
        )}
      </span>
      <span className={styles.price} aria-live="polite" title={check.price ? text.priceTitle(check.price.formula) : ''}>
        {check.price && <b className="num">{text.atMost(check.price.tokens)}</b>}
      </span>
      <IconButton icon="undo" label={text.undo} disabled={!edits.canUndo} onClick={edits.undo} />
      <IconButton icon="redo" label={text.redo} disabled={!edits.canRedo} onClick={edits.redo} />
      <Menu
        label={text.more}
        icon="more"
        items={[
          { label: text.saveAsCopy, icon: 'copy', disabled: blocked, onSelect: onSaveCopy },
          { label: text.versions, icon: 'clock', disabled: !flow, onSelect: onVersions },
        ]}
      />
      <Button disabled={blocked || stored} aria-keyshortcuts="Control+S" onClick={onSave}>
        {saving.foreign ? text.saveAsCopy : text.save}
      </Button>
      <Button kind="main" icon="spark" disabled={blocked} onClick={onRun}>
        {text.runFlow}
      </Button>
    </header>
  );
}
