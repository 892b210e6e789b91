// Package operator shows operators the state of the whole installation, and the
// work and accounts of all people. It shows no prompts, inputs or results: an
// operator sees that people work, not what they make.
//
// The package does not check who may use it; access.Operating does.
package operator

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/file/quota"
	"atelier/internal/money/ledger"
	"atelier/internal/people/company"
	"atelier/internal/people/credential"
	"atelier/internal/people/device"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
	"atelier/internal/people/session"
	"atelier/internal/run/generation"
	"atelier/internal/run/node"
	"atelier/internal/run/run"
)

// Service answers the requests of operators. It is safe for concurrent use.
type Service struct {
	DB        *sqldb.DB
	Runs      *generation.Service
	Grants    *ledger.Grants
	Operators principal.Operators
}

// Account is the account of a person or a team, with its name.
type Account struct {
	ID          string
	TeamID      string // empty for the account of a person
	Name        string // e-mail address of the person, or name of the team; empty if the person was deleted
	CompanyID   string // empty for the account of a person
	CompanyName string
}

// Work is a run, with the names of its account and person.
type Work struct {
	run.Work
	Account Account
	Email   string // empty if the person was deleted
}

// ListWork returns at most limit runs of all accounts that have not ended,
// oldest first, starting after the cursor. If state is not empty, it returns
// only runs in that state: run.Queued or run.Running.
func (s *Service) ListWork(ctx context.Context, state run.State, after run.Cursor, limit int) (page []Work, err error) {
	states := []run.State{run.Queued, run.Running}
	if state != "" {
		states = []run.State{state}
	}
	err = s.DB.Read(ctx, func(tx *sqldb.Tx) error {
		var all []run.Work
		for _, one := range states {
			runs, err := run.ListWork(ctx, tx, one, after, limit)
			if err != nil {
				return fmt.Errorf("list runs: %w", err)
			}
			all = append(all, runs...)
		}
		slices.SortFunc(all, compareAge)
		page, err = nameAll(ctx, tx, all[:min(limit, len(all))])
		return err
	})
	return page, err
}

// compareAge orders runs like run.ListWork: by their creation, oldest first, and
// by their ids if they were created at the same time.
func compareAge(a, b run.Work) int {
	return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.ID, b.ID))
}

// CancelRun cancels a run of any account on behalf of an operator. was is true
// if the run had already ended.
func (s *Service) CancelRun(ctx context.Context, operator principal.Principal, id string) (w Work, was bool, err error) {
	if _, was, err = s.Runs.CancelRun(ctx, operator, id); err != nil {
		return w, false, err
	}
	err = s.DB.Read(ctx, func(tx *sqldb.Tx) error {
		one, err := run.GetWork(ctx, tx, id)
		if err != nil {
			return err
		}
		all, err := nameAll(ctx, tx, []run.Work{one})
		if err == nil {
			w = all[0]
		}
		return err
	})
	return w, was, err
}

// nameAll adds the names of accounts and people to runs.
func nameAll(ctx context.Context, tx *sqldb.Tx, runs []run.Work) ([]Work, error) {
	if len(runs) == 0 {
		return nil, nil
	}
	people := map[string]bool{}
	teams := map[string]bool{}
	for _, r := range runs {
		people[r.PersonID] = true
		if r.TeamID != "" {
			teams[r.TeamID] = true
		}
	}
	emails, err := person.Emails(ctx, tx, slices.Collect(maps.Keys(people)))
	if err != nil {
		return nil, fmt.Errorf("read e-mail addresses: %w", err)
	}
	labels, err := company.TeamLabels(ctx, tx, slices.Collect(maps.Keys(teams)))
	if err != nil {
		return nil, fmt.Errorf("read team names: %w", err)
	}

	all := make([]Work, len(runs))
	for i, r := range runs {
		all[i] = Work{
			Work:    r,
			Email:   emails[r.PersonID],
			Account: accountOf(r.AccountID, r.TeamID, emails, labels),
		}
	}
	return all, nil
}

// accountOf returns an account with its name. teamID is empty for the account
// of a person.
func accountOf(id, teamID string, emails map[string]string, labels map[string]company.TeamLabel) Account {
	if teamID == "" {
		return Account{ID: id, Name: emails[id]}
	}
	label := labels[teamID]
	return Account{
		ID:          id,
		TeamID:      teamID,
		Name:        label.Name,
		CompanyID:   label.CompanyID,
		CompanyName: label.CompanyName,
	}
}

// Person is a person with their balance and activity.
type Person struct {
	person.Person
	Operator bool      // the setting operators names the e-mail address
	LastSeen time.Time // newest use of a browser, device or access token; zero if there is none
	Balance  ledger.Balance
	Runs     int64 // number of runs that the person has started, at most 1,000
}

// ListPeople returns at most limit people whose e-mail address contains text,
// ordered by e-mail address, starting after afterEmail.
func (s *Service) ListPeople(ctx context.Context, text, afterEmail string, limit int) (page []Person, err error) {
	err = s.DB.Read(ctx, func(tx *sqldb.Tx) error {
		people, err := person.List(ctx, tx, text, afterEmail, limit)
		if err != nil {
			return fmt.Errorf("list people: %w", err)
		}
		page, err = s.describePeople(ctx, tx, people)
		return err
	})
	return page, err
}

// describePeople adds the balances and the activity of people.
func (s *Service) describePeople(ctx context.Context, tx *sqldb.Tx, people []person.Person) ([]Person, error) {
	if len(people) == 0 {
		return nil, nil
	}
	personIDs := make([]string, len(people))
	for i, p := range people {
		personIDs[i] = p.ID
	}
	balances, err := ledger.Balances(ctx, tx, personIDs, s.Grants.MonthlyAllowance)
	if err != nil {
		return nil, err
	}
	runs, err := run.CountByPerson(ctx, tx, personIDs)
	if err != nil {
		return nil, fmt.Errorf("count runs: %w", err)
	}
	seen, err := lastSeen(ctx, tx, personIDs)
	if err != nil {
		return nil, fmt.Errorf("read last use: %w", err)
	}

	page := make([]Person, len(people))
	for i, p := range people {
		page[i] = Person{
			Person:   p,
			Operator: s.Operators.Names(p.Email),
			LastSeen: seen[p.ID],
			Balance:  balances[p.ID],
			Runs:     runs[p.ID],
		}
	}
	return page, nil
}

// lastSeen returns, by person id, when people last used a browser, device or
// access token.
func lastSeen(ctx context.Context, tx *sqldb.Tx, personIDs []string) (map[string]time.Time, error) {
	seen := map[string]time.Time{}
	for _, lastUsed := range []func(context.Context, *sqldb.Tx, []string) (map[string]sqldb.Time, error){
		session.LastUsed, device.LastUsed, credential.LastUsed,
	} {
		used, err := lastUsed(ctx, tx, personIDs)
		if err != nil {
			return nil, err
		}
		for id, at := range used {
			if at.After(seen[id]) {
				seen[id] = at.Time
			}
		}
	}
	return seen, nil
}

// Company is a company with its size, its teams and its activity.
type Company struct {
	company.Company
	Members   int
	TeamCount int
	Teams     []Team // ordered by name, at most maxTeams
	Activity  run.CompanyActivity
}

// Team is a team with its balance.
type Team struct {
	company.Team
	Balance ledger.Balance
}

// maxTeams is the maximum number of teams that are listed with a company.
const maxTeams = 100

// ListCompanies returns at most limit companies whose name contains text,
// ordered by id, starting after afterID.
func (s *Service) ListCompanies(ctx context.Context, text, afterID string, limit int) (page []Company, err error) {
	err = s.DB.Read(ctx, func(tx *sqldb.Tx) error {
		all, err := company.List(ctx, tx, text, afterID, limit)
		if err != nil || len(all) == 0 {
			page = nil
			return err
		}
		companyIDs := make([]string, len(all))
		for i, c := range all {
			companyIDs[i] = c.ID
		}
		activity, err := run.ActivityByCompany(ctx, tx, companyIDs)
		if err != nil {
			return err
		}

		page = make([]Company, len(all))
		for i, c := range all {
			page[i] = Company{Company: c, Activity: activity[c.ID]}
			if page[i].Members, page[i].TeamCount, err = company.Count(ctx, tx, c.ID); err != nil {
				return fmt.Errorf("count members: %w", err)
			}
			if page[i].Teams, err = s.listTeams(ctx, tx, c.ID); err != nil {
				return fmt.Errorf("list teams: %w", err)
			}
		}
		return nil
	})
	return page, err
}

// listTeams returns the teams of a company with their balances.
func (s *Service) listTeams(ctx context.Context, tx *sqldb.Tx, companyID string) ([]Team, error) {
	all, err := company.Teams(ctx, tx, companyID, company.Key{}, maxTeams)
	if err != nil {
		return nil, err
	}
	teamIDs := make([]string, len(all))
	for i, t := range all {
		teamIDs[i] = t.ID
	}
	balances, err := ledger.Balances(ctx, tx, teamIDs, s.Grants.MonthlyAllowance)
	if err != nil {
		return nil, err
	}

	teams := make([]Team, len(all))
	for i, t := range all {
		teams[i] = Team{Team: t, Balance: balances[t.ID]}
	}
	return teams, nil
}

// Grant is a grant of tokens that has happened, with the name of the account.
type Grant struct {
	ledger.Receipt
	Account Account
}

// GrantTokens grants tokens to an account, once for each idempotency key of the
// operator.
func (s *Service) GrantTokens(ctx context.Context, operator principal.Principal, r ledger.GrantRequest) (g Grant, err error) {
	if g.Receipt, err = s.Grants.GrantOnce(ctx, operator, r); err != nil {
		return Grant{}, err
	}
	err = s.DB.Read(ctx, func(tx *sqldb.Tx) error {
		labels, err := company.TeamLabels(ctx, tx, []string{g.AccountID})
		if err != nil {
			return err
		}
		teamID := ""
		if _, isTeam := labels[g.AccountID]; isTeam {
			teamID = g.AccountID
		}
		emails, err := person.Emails(ctx, tx, []string{g.AccountID})
		g.Account = accountOf(g.AccountID, teamID, emails, labels)
		return err
	})
	return g, err
}

// Status is the state of the installation.
type Status struct {
	At          time.Time
	Nodes       []node.Node // newest first
	Queues      []Queue
	Unavailable map[string]time.Time // by engine, since when no node can reach its server
	StoredBytes int64
}

// Queue is the load of an engine on all nodes together.
type Queue struct {
	run.Queue
	// Median is the median of the creation times of the queued runs, of which
	// at most 1,000 are read. It is zero if no run is queued.
	Median time.Time
}

// ReadStatus returns the state of the installation. It reads a limited number
// of rows, whatever the number of runs.
func (s *Service) ReadStatus(ctx context.Context) (status Status, err error) {
	err = s.DB.Read(ctx, func(tx *sqldb.Tx) error {
		status = Status{At: tx.Now}
		if status.Nodes, err = node.List(ctx, tx); err != nil {
			return fmt.Errorf("list nodes: %w", err)
		}
		if status.Queues, err = readQueues(ctx, tx); err != nil {
			return err
		}
		if status.Unavailable, err = run.UnavailableEngines(ctx, tx); err != nil {
			return fmt.Errorf("list unavailable engines: %w", err)
		}
		status.StoredBytes, err = quota.TotalBytes(ctx, tx)
		return err
	})
	return status, err
}

// readQueues returns the load of all engines that have queued or running runs.
func readQueues(ctx context.Context, tx *sqldb.Tx) ([]Queue, error) {
	all, err := run.Queues(ctx, tx)
	if err != nil {
		return nil, err
	}
	queues := make([]Queue, len(all))
	for i, q := range all {
		queues[i].Queue = q
		if q.Waiting == 0 {
			continue
		}
		created, err := run.SampleWaiting(ctx, tx, q.Engine)
		if err != nil {
			return nil, fmt.Errorf("read waiting times: %w", err)
		}
		if len(created) > 0 {
			slices.SortFunc(created, time.Time.Compare)
			queues[i].Median = created[len(created)/2]
		}
	}
	return queues, nil
}
