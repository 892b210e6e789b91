import type { ReactNode } from 'react';
import { Notice } from '../ui/Notice';

/** Denied says why the person cannot see a part, in its place; without a reason it shows the part. */
export function Denied({ reason, children }: { reason: string | undefined; children: ReactNode }) {
  return reason ? <Notice icon="lock">{reason}</Notice> : children;
}
