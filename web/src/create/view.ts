/** View is how far a picture is zoomed, and how far its middle is moved, in pixels. */
export type View = { scale: number; x: number; y: number };

/** fit shows the whole picture. */
export const fit: View = { scale: 1, x: 0, y: 0 };

const least = 1;
const most = 16;

/** zoomAt zooms by a factor so that a point, counted from the middle of the stage, stays where it is. */
export function zoomAt(view: View, factor: number, point: { x: number; y: number }): View {
  const scale = Math.min(most, Math.max(least, view.scale * factor));
  if (scale === least) {
    return fit;
  }
  const ratio = scale / view.scale;

  return { scale, x: point.x - (point.x - view.x) * ratio, y: point.y - (point.y - view.y) * ratio };
}

/** move moves a zoomed picture; one that is shown whole stays in its place. */
export function move(view: View, dx: number, dy: number): View {
  return view.scale > least ? { ...view, x: view.x + dx, y: view.y + dy } : view;
}
