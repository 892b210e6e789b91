import { text } from '../text/form';
import { IconButton } from '../ui/Button';
import { Field, TextInput } from '../ui/Field';
import type { FieldProps } from './FieldInput';
import styles from './Form.module.css';

const seeds = 2 ** 31;

/** drawSeed returns a random seed within the limits of a field. */
export function drawSeed(min = 0, max = seeds - 1): number {
  const [random = 0] = crypto.getRandomValues(new Uint32Array(1));
  const top = Math.min(max, seeds - 1);

  return min + (random % Math.max(1, top - min + 1));
}

/** SeedField is a number that fixes the random part of a run; without one each run draws its own. */
export function SeedField({ field, value, problem, onChange }: FieldProps) {
  const { min, max, help } = field.display;
  const seed = typeof value === 'number' ? value : undefined;

  return (
    <Field label={field.label} help={help} problem={problem}>
      {(attributes) => (
        <div className={styles.beside}>
          <TextInput
            {...attributes}
            inputMode="numeric"
            data-field={field.fieldKey}
            placeholder={text.seedRandom}
            value={seed ?? ''}
            onChange={(event) => {
              const digits = event.target.value.replace(/\D/g, '').slice(0, 15);
              onChange(digits === '' ? undefined : Number(digits));
            }}
          />
          {seed !== undefined && (
            <IconButton kind="plain" icon="close" label={text.clearSeed} onClick={() => onChange(undefined)} />
          )}
          <IconButton kind="plain" icon="dice" label={text.newSeed} onClick={() => onChange(drawSeed(min, max))} />
        </div>
      )}
    </Field>
  );
}
