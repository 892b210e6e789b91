import { type ComponentProps, Suspense } from 'react';
import { Route, Router, Switch } from 'wouter';
import { Create } from '../create/Create';
import { AccountProvider, useIdentity } from '../data/account';
import { ErrorFault } from '../data/ErrorFault';
import { guardNavigation } from '../data/leaving';
import { LiveProvider } from '../data/live';
import { useRunNotifications } from '../data/notifications';
import { part } from '../ui/part';
import { Empty, Waiting } from '../ui/States';
import { ToastRegion } from '../ui/Toast';
import { Boundary } from './Boundary';
import { Shell } from './Shell';

const Library = part(() => import('../library/Library'));
const BoardList = part(() => import('../boards/BoardList'));
const Board = part(() => import('../boards/Board'));
const FlowList = part(() => import('../flows/FlowList'));
const FlowPage = part(() => import('../flows/FlowPage'));
const Reports = part(() => import('../reports/Reports'));
const You = part(() => import('../you/You'));
const People = part(() => import('../people/People'));
const Operator = part(() => import('../operator/Operator'));

// A page with unsaved changes can ask before another one is opened.
const askFirst: ComponentProps<typeof Router>['aroundNav'] = (navigate, to, options) =>
  guardNavigation(() => navigate(to, options), location.pathname, to);

/** App is the studio: who is signed in, the frame, and the page of the address. */
export function App() {
  const identity = useIdentity();

  if (identity.isError && !identity.data) {
    return <ErrorFault error={identity.error} onRetry={() => void identity.refetch()} />;
  }
  if (!identity.data) {
    return <Waiting label="Opening the studio" />;
  }
  return (
    <Router aroundNav={askFirst}>
      <AccountProvider me={identity.data}>
        <LiveProvider>
          <ToastRegion>
            <Shell>
              <Boundary>
                <Suspense fallback={<Waiting />}>
                  <Pages />
                </Suspense>
              </Boundary>
            </Shell>
          </ToastRegion>
        </LiveProvider>
      </AccountProvider>
    </Router>
  );
}

function Pages() {
  useRunNotifications();

  return (
    <Switch>
      <Route path="/">
        <Create />
      </Route>
      <Route path="/welcome">
        <Create welcome />
      </Route>
      <Route path="/create/:tool_id">{({ tool_id }) => <Create toolId={tool_id} />}</Route>
      <Route path="/library">
        <Library />
      </Route>
      <Route path="/library/:library_id">{({ library_id }) => <Library openId={library_id} />}</Route>
      <Route path="/boards">
        <BoardList />
      </Route>
      <Route path="/boards/:board_id">{({ board_id }) => <Board key={board_id} boardId={board_id} />}</Route>
      <Route path="/flows">
        <FlowList />
      </Route>
      <Route path="/flows/:flow_id">{({ flow_id }) => <FlowPage flowId={flow_id} />}</Route>
      <Route path="/reports">
        <Reports />
      </Route>
      <Route path="/you">
        <You part="balance" />
      </Route>
      <Route path="/you/:part">{({ part }) => <You part={part} />}</Route>
      <Route path="/people">
        <People />
      </Route>
      <Route path="/people/:team_id">{({ team_id }) => <People ownerId={team_id} />}</Route>
      <Route path="/people/:team_id/:part">{({ team_id, part }) => <People ownerId={team_id} part={part} />}</Route>
      <Route path="/operator">
        <Operator part="status" />
      </Route>
      <Route path="/operator/:part">{({ part }) => <Operator part={part} />}</Route>
      <Route>
        <Empty title="There is no such page">The address may be mistyped, or the page has moved.</Empty>
      </Route>
    </Switch>
  );
}
