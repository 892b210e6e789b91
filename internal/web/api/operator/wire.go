package operator

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"atelier/internal/account/operator"
	"atelier/internal/catalog/catalog"
	"atelier/internal/money/ledger"
	"atelier/internal/run/node"
	"atelier/internal/run/run"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/api/wire"
)

// asStatus converts the state of the installation to its API representation.
func (h *Handler) asStatus(s operator.Status) wire.OperatorStatus {
	status := wire.OperatorStatus{
		Version:       h.Installation.Version,
		Started:       rest.Moment(h.Installation.Started),
		UptimeSeconds: max(0, int64(s.At.Sub(h.Installation.Started)/time.Second)),
		Database:      wire.OperatorDatabase(h.Operator.DB.Dialect.Name),
		Storage: wire.OperatorStorage{
			Kind:       wire.Folder,
			UsedBytes:  s.StoredBytes,
			LimitBytes: rest.NumberOrNull(h.Installation.StorageLimit),
			State:      h.Installation.StorageState(),
		},
		Engines: listEngines(s, h.Catalog.CurrentSnapshot().AllTools()),
		Nodes:   rest.Convert(s.Nodes, func(n node.Node) wire.OperatorNode { return asNode(n, s.At) }),
		Created: rest.Moment(s.At),
	}
	if h.Installation.StoresInS3 {
		status.Storage.Kind = wire.S3
	}
	for _, e := range status.Engines {
		status.Running += e.Running
		status.Waiting += e.Waiting
	}
	return status
}

// listEngines returns all engines that a live node has, that have runs, or that
// a tool names, ordered by name.
func listEngines(s operator.Status, tools []*catalog.Tool) []wire.OperatorEngine {
	engines := map[string]*wire.OperatorEngine{}
	limits := map[string]int64{} // on the runs of an engine on all nodes together
	engineOf := func(name string) *wire.OperatorEngine {
		if engines[name] == nil {
			engines[name] = &wire.OperatorEngine{Name: name, Health: wire.OperatorHealthUnserved, Tools: []wire.OperatorTool{}}
		}
		return engines[name]
	}

	for _, n := range s.Nodes {
		if !n.IsLive(s.At) {
			continue
		}
		for _, one := range n.Engines {
			e := engineOf(one.Name)
			e.Health = wire.OperatorHealthAvailable
			e.Nodes++
			e.Capacity += one.Capacity
			limits[one.Name] = max(limits[one.Name], one.Limit)
			if f := one.Failure; f != nil && (e.LastError == nil || f.At.After(e.LastError.Created)) {
				e.LastError = &wire.OperatorEngineError{
					Code:    f.Code,
					Message: rest.TextOrNull(f.Message),
					NodeID:  n.ID,
					Created: rest.Moment(f.At),
				}
			}
		}
	}
	for _, q := range s.Queues {
		e := engineOf(q.Engine)
		e.Running = q.Active
		e.Waiting = q.Waiting
		e.OldestWaitSeconds = secondsSince(q.Oldest, s.At)
		e.MedianWaitSeconds = secondsSince(q.Median, s.At)
	}
	for _, t := range tools {
		if t.IsFlow() {
			continue // its steps run on the engines of other tools
		}
		e := engineOf(t.Engine.Name)
		e.Tools = append(e.Tools, wire.OperatorTool{ID: t.ID, Name: t.Name})
	}
	for name, since := range s.Unavailable {
		e := engineOf(name)
		e.UnavailableSince = rest.MomentOrNull(since)
		if e.Health == wire.OperatorHealthAvailable {
			e.Health = wire.OperatorHealthUnavailable
		}
	}

	list := make([]wire.OperatorEngine, 0, len(engines))
	for _, name := range slices.Sorted(maps.Keys(engines)) {
		e := engines[name]
		if limits[name] > 0 {
			e.Capacity = min(e.Capacity, limits[name])
		}
		slices.SortFunc(e.Tools, func(a, b wire.OperatorTool) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
		list = append(list, *e)
	}
	return list
}

// secondsSince returns the whole seconds from start to now, or null if start is
// zero.
func secondsSince(start, now time.Time) *int64 {
	if start.IsZero() {
		return nil
	}
	seconds := max(0, int64(now.Sub(start)/time.Second))
	return &seconds
}

func asNode(n node.Node, now time.Time) wire.OperatorNode {
	return wire.OperatorNode{
		ID:       n.ID,
		Version:  n.Version,
		Roles:    n.Roles,
		Live:     n.IsLive(now),
		Started:  rest.Moment(n.Started),
		LastSeen: rest.Moment(n.Seen),
		Engines: rest.Convert(n.Engines, func(e node.Engine) wire.OperatorNodeEngine {
			return wire.OperatorNodeEngine{Name: e.Name, Available: e.Available, Capacity: e.Capacity, Running: e.Running}
		}),
	}
}

// publicStatuses has the statuses of runs for their states.
var publicStatuses = map[run.State]wire.OperatorRunStatus{
	run.Queued:    wire.OperatorRunStatusWaiting,
	run.Running:   wire.OperatorRunStatusRunning,
	run.Succeeded: wire.OperatorRunStatusSucceeded,
	run.Failed:    wire.OperatorRunStatusFailed,
	run.Cancelled: wire.OperatorRunStatusCancelled,
}

// asRun converts a run to its API representation. tools has the current names of
// tools by id.
func asRun(w operator.Work, tools map[string]string) wire.OperatorRun {
	one := wire.OperatorRun{
		RequestID:           w.ID,
		Status:              publicStatuses[w.State],
		CancelRequested:     w.Cancel,
		ToolID:              w.ToolID,
		ToolName:            rest.TextOrNull(tools[w.ToolID]),
		Engine:              w.Engine,
		Account:             asAccount(w.Account),
		UID:                 w.PersonID,
		Email:               w.Email,
		NodeID:              rest.TextOrNull(w.Worker),
		Attempts:            w.Attempt,
		ServerQueuePosition: w.ServerPosition,
		TokensHeld:          w.TokensHeld,
		Created:             rest.Moment(w.Created),
		Started:             rest.MomentOrNull(w.Started),
	}
	if w.Progress != nil {
		fraction := float64(*w.Progress) / 1000
		one.Progress = &fraction
	}
	return one
}

func asAccount(a operator.Account) wire.OperatorAccount {
	account := wire.OperatorAccount{
		ID:          a.ID,
		Kind:        wire.OperatorAccountKindPERSONAL,
		Name:        a.Name,
		CompanyID:   rest.TextOrNull(a.CompanyID),
		CompanyName: rest.TextOrNull(a.CompanyName),
	}
	if a.TeamID != "" {
		account.Kind = wire.OperatorAccountKindTEAM
	}
	return account
}

func asPerson(p operator.Person) wire.OperatorPerson {
	return wire.OperatorPerson{
		UID:           p.ID,
		Email:         p.Email,
		EmailVerified: p.EmailVerified,
		Suspended:     p.Suspended,
		Operator:      p.Operator,
		Created:       rest.Moment(p.Created),
		LastSeen:      rest.MomentOrNull(p.LastSeen),
		Balance:       asBalance(p.Balance),
		Runs:          p.Runs,
	}
}

func asCompany(c operator.Company) wire.OperatorCompany {
	return wire.OperatorCompany{
		ID:        c.ID,
		Name:      c.Name,
		Plan:      wire.OperatorCompanyPlan(c.Plan),
		TimeZone:  c.Zone,
		Created:   rest.Moment(c.Created),
		Members:   int64(c.Members),
		TeamCount: int64(c.TeamCount),
		Teams:     rest.Convert(c.Teams, asTeam),
		Runs:      c.Activity.Runs,
		LastRun:   rest.MomentOrNull(c.Activity.LastRun),
	}
}

func asTeam(t operator.Team) wire.OperatorTeam {
	return wire.OperatorTeam{ID: t.ID, Name: t.Name, Balance: asBalance(t.Balance)}
}

func asBalance(b ledger.Balance) wire.Balance {
	return wire.Balance{Tokens: b.Tokens, Held: b.Held, FreeAllowanceLeft: b.FreeAllowanceLeft}
}

// asSetting converts a setting to its API representation. The value of a secret
// is left out, although it is masked already.
func asSetting(s Setting) wire.OperatorSetting {
	one := wire.OperatorSetting{
		Name:        s.Name,
		Secret:      s.Secret,
		IsSet:       s.IsSet,
		Source:      wire.OperatorSettingSource(s.Source),
		Description: s.Help,
	}
	if !s.Secret {
		one.Value = &s.Value
	}
	return one
}
