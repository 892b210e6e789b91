import { type ClipboardEvent, type DragEvent, Suspense, useRef, useState } from 'react';
import { type DraggedItem, hasDragged, hasFiles, readDragged } from '../data/dragged';
import { text } from '../text/form';
import { Button, IconButton } from '../ui/Button';
import { classes } from '../ui/classes';
import { Field } from '../ui/Field';
import { Progress } from '../ui/Progress';
import { part } from '../ui/part';
import type { FieldProps } from './FieldInput';
import { type MediaValue, mediaOf, mediumOf, takesMany } from './fields';
import styles from './Media.module.css';
import type { PickedFile } from './MediaPicker';
import { MediaThumb } from './MediaThumb';
import { addMedia } from './mediafields';
import type { Uploads } from './uploads';

const MediaPicker = part(() => import('./MediaPicker'));

/** MediaField takes files: dropped, pasted, from the system, from the library or from earlier uploads. */
export function MediaField({ field, value, problem, onChange, uploads }: FieldProps & { uploads: Uploads }) {
  const [over, setOver] = useState(false);
  const [picking, setPicking] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  const many = takesMany(field);
  const medium = mediumOf(field) ?? 'IMG';
  const files = mediaOf(value);
  const sending = uploads.sending.filter((one) => one.key === field.fieldKey);
  const limit = many ? (field.display.max_items ?? 12) : 1;
  const accept = field.display.accept?.join(',') ?? acceptAll[medium];

  const add = (items: Array<DraggedItem | MediaValue>) => {
    uploads.clearProblem(field.fieldKey);
    for (const item of items.filter((one) => one.type === undefined || one.type === medium)) {
      onChange((before) => addMedia(field, before, { ...item }));
    }
  };
  const onDrop = (event: DragEvent) => {
    setOver(false);
    if (hasDragged(event.dataTransfer)) {
      event.preventDefault();
      event.stopPropagation();
      add(readDragged(event.dataTransfer));
    } else if (hasFiles(event.dataTransfer)) {
      event.preventDefault();
      event.stopPropagation();
      uploads.addFiles(field, event.dataTransfer.files);
    }
  };
  const onDragOver = (event: DragEvent) => {
    if (hasDragged(event.dataTransfer) || hasFiles(event.dataTransfer)) {
      event.preventDefault();
      setOver(true);
    }
  };
  const onPaste = (event: ClipboardEvent) => {
    if (event.clipboardData.files.length > 0) {
      event.preventDefault();
      event.stopPropagation();
      uploads.addFiles(field, event.clipboardData.files);
    }
  };

  const empty = files.length + sending.length === 0;
  return (
    <Field
      label={field.label}
      note={many ? text.count(files.length, limit) : undefined}
      help={field.display.help}
      problem={uploads.problems[field.fieldKey] ?? problem}
      group
    >
      {() => (
        // biome-ignore lint/a11y/noStaticElementInteractions: the buttons inside do the same as a drop.
        <div
          className={classes(styles.drop, over && styles.over, empty && styles.empty)}
          onDragOver={onDragOver}
          onDragLeave={() => setOver(false)}
          onDrop={onDrop}
          onPaste={onPaste}
        >
          {!empty && (
            <ul className={styles.files}>
              {files.map((file, at) => (
                <FileEntry
                  key={`${file.kind} ${file.id}`}
                  file={file}
                  onEarlier={many && at > 0 ? () => onChange(moveEarlier(files, at)) : undefined}
                  onRemove={() => onChange(many ? files.filter((_, place) => place !== at) : undefined)}
                />
              ))}
              {sending.map((one) => (
                <li key={one.number} className={styles.file}>
                  <span className={styles.sending}>
                    <Progress label={text.uploading(one.name, Math.round(one.part * 100))} value={one.part} />
                    <span className="small soft cut">{one.name}</span>
                  </span>
                  <IconButton
                    kind="pill"
                    icon="close"
                    label={text.stopUpload(one.name)}
                    className={styles.remove}
                    onClick={one.stop}
                  />
                </li>
              ))}
            </ul>
          )}
          <div className={styles.ways}>
            {empty && <p className="small soft">{many ? text.dropMany : text.drop[medium]}</p>}
            <Button small icon="upload" data-field={field.fieldKey} onClick={() => input.current?.click()}>
              {many ? text.chooseFiles : text.chooseFile}
            </Button>
            <Button small icon="grid" onClick={() => setPicking(true)}>
              {text.fromLibrary}
            </Button>
          </div>
          <input
            ref={input}
            type="file"
            hidden
            accept={accept}
            multiple={many}
            aria-label={field.label}
            onChange={(event) => {
              uploads.addFiles(field, [...(event.target.files ?? [])]);
              event.target.value = '';
            }}
          />
          {picking && (
            <Suspense>
              <MediaPicker
                type={medium}
                many={many}
                limit={Math.max(1, limit - files.length)}
                onTake={(taken) => {
                  setPicking(false);
                  add(taken.map(valueOfPicked));
                }}
                onClose={() => setPicking(false)}
              />
            </Suspense>
          )}
        </div>
      )}
    </Field>
  );
}

function valueOfPicked({ kind, id, item }: PickedFile): MediaValue {
  const name = 'prompt' in item ? (item.prompt ?? '') : item.name;

  return { kind, id, type: item.type, thumb: item.thumb_url, name };
}

const acceptAll = { IMG: 'image/*', VID: 'video/*', AUDIO: 'audio/*', ASSET_3D: '.glb', TEXT: 'text/*' };

function moveEarlier(files: MediaValue[], at: number): MediaValue[] {
  const next = [...files];
  const [file] = next.splice(at, 1);
  if (file) {
    next.splice(at - 1, 0, file);
  }

  return next;
}

type FileEntryProps = { file: MediaValue; onEarlier?: () => void; onRemove: () => void };

function FileEntry({ file, onEarlier, onRemove }: FileEntryProps) {
  const name = file.name || text.aFile;

  return (
    <li className={styles.file} title={file.name}>
      <MediaThumb file={file} />
      {onEarlier && (
        <IconButton
          kind="pill"
          icon="chevronLeft"
          label={text.moveEarlier(name)}
          className={styles.earlier}
          onClick={onEarlier}
        />
      )}
      <IconButton kind="pill" icon="close" label={text.remove(name)} className={styles.remove} onClick={onRemove} />
    </li>
  );
}
