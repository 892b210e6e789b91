import type { ToolDetail } from '../data/catalog';
import { ToolPicture } from '../data/ToolPicture';
import { text } from '../text/create';
import { Icon } from '../ui/Icon';
import styles from './Create.module.css';

/** ToolButton shows the tool that is chosen, and opens the list of tools. */
export function ToolButton({ tool, onClick }: { tool: ToolDetail; onClick: () => void }) {
  return (
    <button type="button" className={styles.tool} aria-haspopup="dialog" onClick={onClick}>
      <span className="unseen">{text.toolLabel}</span>
      <ToolPicture tool={tool} />
      <span className={styles.toolText}>
        <b className="cut">{tool.name}</b>
        <span className={styles.toolLine}>
          <span className="cut">{tool.description}</span>
          <span className={styles.toolPrice}>{text.toolPrice(tool.tokens_per_result)}</span>
        </span>
      </span>
      <span className="soft">
        <Icon name="chevronDown" />
      </span>
    </button>
  );
}
