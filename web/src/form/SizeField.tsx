import { type CSSProperties, useId, useState } from 'react';
import { text } from '../text/form';
import { IconButton } from '../ui/Button';
import { classes } from '../ui/classes';
import { Field, NumberInput } from '../ui/Field';
import type { FieldProps } from './FieldInput';
import styles from './Form.module.css';
import { allowsOwnSize, isOffered, isSize, type Size } from './fields';

/** SizeField offers the shapes of a tool, and a size of one's own where the tool takes one. */
export function SizeField({ field, value, problem, onChange }: FieldProps) {
  const name = useId();
  const options = field.display.select?.options ?? [];
  const size = isSize(value) ? value : undefined;
  const mayOwn = allowsOwnSize(field);
  const [own, setOwn] = useState(size !== undefined && !isOffered(field, size));
  const typing = mayOwn && (own || options.length === 0 || (size !== undefined && !isOffered(field, size)));
  const note = size ? text.size(size.width, size.height) : undefined;

  return (
    <Field label={field.label} note={note} help={field.display.help} problem={problem} group>
      {() => (
        <>
          {options.length > 0 && (
            <div className={styles.shapes}>
              {options.map((option, at) => (
                <label key={option.text} className={styles.picture} title={text.size(option.width, option.height)}>
                  <input
                    type="radio"
                    name={name}
                    data-field={at === 0 ? field.fieldKey : undefined}
                    checked={!typing && size?.width === option.width && size.height === option.height}
                    onChange={() => {
                      setOwn(false);
                      onChange({ width: option.width, height: option.height });
                    }}
                  />
                  <Shape size={option} />
                  <span className={styles.optionText}>{option.text}</span>
                </label>
              ))}
              {mayOwn && (
                <label className={styles.picture}>
                  <input type="radio" name={name} checked={typing} onChange={() => setOwn(true)} />
                  <Shape own />
                  <span className={styles.optionText}>{text.ownSize}</span>
                </label>
              )}
            </div>
          )}
          {typing && <OwnSize field={field} size={size} onChange={onChange} first={options.length === 0} />}
        </>
      )}
    </Field>
  );
}

/** Shape draws the outline of a size. */
function Shape({ size, own }: { size?: Size; own?: boolean }) {
  const ratio = size ? size.width / size.height : 1;
  const width = ratio >= 1 ? 24 : Math.max(8, 24 * ratio);
  const height = ratio >= 1 ? Math.max(8, 24 / ratio) : 24;
  const style: CSSProperties = size ? { width, height } : { width: 20, height: 20 };

  return (
    <span className={styles.shape} aria-hidden="true">
      <i className={classes(own && styles.dashed)} style={style} />
    </span>
  );
}

type OwnSizeProps = Pick<FieldProps, 'field' | 'onChange'> & { size: Size | undefined; first: boolean };

function OwnSize({ field, size, onChange, first }: OwnSizeProps) {
  const { min, max, multiple_of: step } = field.display;
  const width = size?.width;
  const height = size?.height;
  const set = (change: Partial<Record<'width' | 'height', number | undefined>>) => {
    const next = { width, height, ...change };
    const known = next.width !== undefined || next.height !== undefined;
    onChange(known ? { width: next.width ?? Number.NaN, height: next.height ?? Number.NaN } : undefined);
  };
  const limits = { min: min ?? 1, max, step: step ?? 1 };
  const shown = (side: number | undefined) => (side === undefined || Number.isNaN(side) ? undefined : side);

  return (
    <div className={styles.beside}>
      <NumberInput
        aria-label={text.width}
        data-field={first ? field.fieldKey : undefined}
        value={shown(width)}
        {...limits}
        onChange={(next) => set({ width: next })}
      />
      <span className="soft">×</span>
      <NumberInput
        aria-label={text.height}
        value={shown(height)}
        {...limits}
        onChange={(next) => set({ height: next })}
      />
      <IconButton
        kind="plain"
        icon="repeat"
        label={text.swapSides}
        onClick={() => set({ width: height, height: width })}
      />
    </div>
  );
}
