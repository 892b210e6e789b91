import { Icon } from '../ui/Icon';
import type { Tool } from './catalog';
import styles from './ToolPicture.module.css';

/** ToolPicture is the small picture of a tool. */
export function ToolPicture({ tool }: { tool: Pick<Tool, 'avatar_url'> }) {
  if (!tool.avatar_url) {
    return (
      <span className={styles.noAvatar}>
        <Icon name="wand" />
      </span>
    );
  }
  return <img className={styles.avatar} src={tool.avatar_url} alt="" />;
}
