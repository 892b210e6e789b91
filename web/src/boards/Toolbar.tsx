import { text } from '../text/boards';
import { IconButton } from '../ui/Button';
import styles from './Board.module.css';
import type { Tool } from './Canvas';

type Props = {
  tool: Tool;
  onTool: (tool: Tool) => void;
  onText: () => void;
  onLibrary: () => void;
  onUpload: () => void;
  onCreate: () => void;
};

/** Toolbar has what is put on the board; each button has a key. */
export function Toolbar({ tool, onTool, onText, onLibrary, onUpload, onCreate }: Props) {
  return (
    <div className={styles.tools} role="toolbar" aria-label={text.tools}>
      <IconButton
        icon="cursor"
        label={text.selectTool}
        on={tool === 'select'}
        aria-pressed={tool === 'select'}
        onClick={() => onTool('select')}
      />
      <IconButton
        icon="hand"
        label={text.handTool}
        on={tool === 'hand'}
        aria-pressed={tool === 'hand'}
        onClick={() => onTool('hand')}
      />
      <i />
      <IconButton icon="text" label={text.textTool} onClick={onText} />
      <IconButton icon="image" label={text.libraryTool} onClick={onLibrary} />
      <IconButton icon="upload" label={text.uploadTool} onClick={onUpload} />
      <i />
      <IconButton icon="spark" label={text.createTool} onClick={onCreate} />
    </div>
  );
}
