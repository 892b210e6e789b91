import { Component, type ReactNode } from 'react';
import { Button } from '../ui/Button';
import { Empty } from '../ui/States';

/** Boundary keeps the frame of the studio when a page breaks, and offers to load it again. */
export class Boundary extends Component<{ children: ReactNode }, { broken: boolean }> {
  override state = { broken: false };

  static getDerivedStateFromError() {
    return { broken: true };
  }

  override render() {
    if (!this.state.broken) {
      return this.props.children;
    }
    const actions = (
      <Button kind="main" onClick={() => location.reload()}>
        Load the page again
      </Button>
    );
    return (
      <Empty title="This page has stopped working" actions={actions}>
        What you typed is saved in this browser. Runs go on.
      </Empty>
    );
  }
}
