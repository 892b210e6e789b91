// Package savedflow keeps the flows that people make without manifests: for
// their own account, for a team, or shared with a company. A saved flow is a
// tool like others, which only those accounts see.
//
//	draft ──check──▶ manifest ──save──▶ saved_flow, tool, tool_version ──▶ catalog.ViewOf
//	  ▲
//	  └── FromResult: the runs that led to a result
package savedflow

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"atelier/internal/base/fault"
	"atelier/internal/base/sanitize"
	"atelier/internal/base/sqldb"
	"atelier/internal/catalog/catalog"
	"atelier/internal/catalog/flow"
	"atelier/internal/people/company"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
	"atelier/internal/run/generation"
)

// Limits of saved flows.
const (
	MaxFlows       = 200 // flows of an account, and flows that are shared in a company
	maxName        = 80  // characters, as in manifests
	maxDescription = 300
	maxDefinition  = 256 << 10 // bytes
)

// Draft is a flow as people send it. Fields and Steps are written as in
// manifests, with the types of decoded JSON.
type Draft struct {
	Name        string
	Description string
	Fields      []any
	Steps       []any
	Results     []any // ids of steps; the last step if it is empty
	// Shared says whether all teams of the company may use the flow.
	Shared bool
}

// Flow is a saved flow.
type Flow struct {
	catalog.SavedFlow
	Draft Draft
}

// Checked is a draft that was compared with the tools that it names.
type Checked struct {
	// Problems say why the flow cannot be saved; empty if it can.
	Problems []catalog.Remark
	// Bounds is the price; nil if the problems do not let it be known.
	Bounds *flow.Bounds

	name       string // trimmed
	definition string
}

// Service checks and saves flows.
type Service struct {
	DB      *sqldb.DB
	Catalog *catalog.Catalog
}

var errNoFlow = fault.New(fault.NotFound, "There is no such flow.")

func errVersion(current int64) error {
	return fault.New(fault.PreconditionFailed, "The flow has changed since you read it. Read it again and check whether your change still makes sense.").With("version", current)
}

// Check compares a draft with the tools that the principal may use.
func (s *Service) Check(ctx context.Context, p principal.Principal, d Draft) (Checked, error) {
	return s.checkAs(ctx, p, "", d)
}

// checkAs is Check for a new version of the flow with an id; "" for a new flow.
func (s *Service) checkAs(ctx context.Context, p principal.Principal, id string, d Draft) (Checked, error) {
	if err := d.clean(); err != nil {
		return Checked{}, err
	}
	view, err := s.Catalog.ViewOf(ctx, generation.AudienceOf(p), p.AccountID)
	if err != nil {
		return Checked{}, err
	}
	find := func(slug, _ string) *catalog.Tool {
		t, _ := view.ToolBySlug(slug)
		return t
	}
	manifest := d.manifest(find)
	tool, definition, problems := catalog.ParseFlow(manifest)
	c := Checked{name: d.Name, definition: definition}
	for _, problem := range problems {
		path, message := splitProblem(problem.Message)
		c.Problems = append(c.Problems, catalog.Remark{Path: path, Message: message})
	}
	if len(definition) > maxDefinition {
		c.Problems = append(c.Problems, catalog.Remark{Message: fmt.Sprintf("the flow has %d bytes; at most %d are allowed", len(definition), maxDefinition)})
	}
	if len(c.Problems) > 0 {
		return c, nil
	}
	isUnknown := func(slug string) bool { return find(slug, "") == nil }
	if !slices.ContainsFunc(tool.Flow.Tools(), isUnknown) {
		bounds := tool.FlowBounds(nil, find)
		c.Bounds = &bounds
	}
	c.Problems = append(c.Problems, tool.CheckFlow(find)...)
	for i, step := range tool.Flow.Steps {
		for _, slug := range step.ToolSlugs() {
			if id != "" && contains(find(slug, ""), id, find, flow.MaxDepth) {
				c.Problems = append(c.Problems, catalog.Remark{Path: []string{"steps", strconv.Itoa(i), "tool"}, Message: "a flow cannot contain itself: " + slug})
			}
		}
	}
	return c, nil
}

// contains reports whether a tool is the flow with an id, or has it as a step, at
// most limit deep.
func contains(t *catalog.Tool, id string, find catalog.ToolFinder, limit int) bool {
	switch {
	case t == nil || limit < 0:
		return false
	case t.ID == id:
		return true
	case !t.IsFlow():
		return false
	}
	return slices.ContainsFunc(t.Flow.Steps, func(step flow.Step) bool {
		return slices.ContainsFunc(step.ToolSlugs(), func(slug string) bool { return contains(find(slug, ""), id, find, limit-1) })
	})
}

// clean trims the name, and checks the texts of a draft.
func (d *Draft) clean() (err error) {
	if d.Name, err = sanitize.Name(d.Name, maxName); err != nil {
		return err
	}
	if utf8.RuneCountInString(d.Description) > maxDescription {
		return fault.New(fault.Invalid, fmt.Sprintf("A description must have at most %d characters.", maxDescription)).On("description")
	}
	return nil
}

// placeInManifest matches a place such as fields[0].key at the beginning of a
// message.
var placeInManifest = regexp.MustCompile(`^[a-z_]+(\[\d+\]|\.\w+)+`)

// splitProblem splits a message such as "fields[0].key: is required" into the
// path and the message.
func splitProblem(text string) (path []string, message string) {
	where := placeInManifest.FindString(text)
	if where == "" {
		where, message, _ = strings.Cut(text, ": ")
		if message == "" || strings.Contains(where, " ") {
			return nil, text
		}
		return []string{where}, message
	}
	message = strings.TrimLeft(strings.TrimPrefix(text, where), ": ")
	where = strings.NewReplacer("[", ".", "]", "").Replace(where)
	where = strings.TrimPrefix(where, "engine.with.")
	return strings.Split(where, "."), message
}

// manifest returns the draft as a manifest. Its results are what the tools of
// the steps in Results make.
func (d Draft) manifest(find catalog.ToolFinder) map[string]any {
	with := map[string]any{"steps": d.Steps}
	if len(d.Results) > 0 {
		with["results"] = d.Results
	}
	all := map[string]any{
		"name":   d.Name,
		"output": outputOf(with, find),
		"fields": d.Fields,
		"engine": map[string]any{"name": catalog.FlowEngine, "with": with},
	}
	if d.Fields == nil {
		all["fields"] = []any{}
	}
	if d.Description != "" {
		all["description"] = d.Description
	}
	return all
}

// outputOf returns what a flow makes: the type of the first step in its results,
// and the kinds of files of all of them.
func outputOf(with map[string]any, find catalog.ToolFinder) map[string]any {
	definition, _ := flow.Parse(with) // problems are reported with the whole manifest
	medium := "IMG"
	var kinds []any
	for _, id := range definition.Results {
		step := definition.StepByID(id)
		if step == nil {
			continue
		}
		for _, slug := range step.ToolSlugs() {
			tool := find(slug, "")
			if tool == nil {
				continue
			}
			if len(kinds) == 0 {
				medium = tool.Output.Type
			}
			for _, kind := range tool.Output.MimeTypes {
				if !slices.Contains(kinds, any(kind)) {
					kinds = append(kinds, kind)
				}
			}
		}
	}
	if len(kinds) == 0 {
		kinds = []any{"image/png"}
	}
	return map[string]any{"type": medium, "mime_types": kinds}
}

// checkValid returns an error with all problems of a draft.
func (c Checked) checkValid() error {
	if len(c.Problems) == 0 {
		return nil
	}
	e := fault.New(fault.Invalid, "The flow has problems.")
	for _, p := range c.Problems {
		e.Fields = append(e.Fields, fault.Field{Path: p.FlowPath(), Message: p.Message})
	}
	return e
}

// Create saves a new flow.
func (s *Service) Create(ctx context.Context, p principal.Principal, d Draft) (f Flow, err error) {
	if err := authorize(p, d, p.PersonID); err != nil {
		return Flow{}, err
	}
	c, err := s.Check(ctx, p, d)
	if err != nil {
		return Flow{}, err
	}
	if err := c.checkValid(); err != nil {
		return Flow{}, err
	}
	saved := catalog.SavedFlow{AccountID: p.AccountID, PersonID: p.PersonID, Name: c.name, Definition: c.definition}
	if d.Shared {
		saved.CompanyID = p.CompanyID
	}
	err = s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		one := saved
		if err := lock(ctx, tx, p); err != nil {
			return err
		}
		if err := checkRoom(ctx, tx, one); err != nil {
			return err
		}
		err := catalog.InsertFlow(ctx, tx, &one)
		f.SavedFlow = one
		return err
	})
	if err != nil {
		return Flow{}, err
	}
	return complete(f.SavedFlow)
}

// lock locks the person, who must not be deleted, and then the catalog, so that
// concurrent transactions cannot exceed the limits together.
func lock(ctx context.Context, tx *sqldb.Tx, p principal.Principal) error {
	if err := person.Lock(ctx, tx, p.PersonID); err != nil {
		return err
	}
	return catalog.Lock(ctx, tx)
}

// checkRoom returns an error if the account, or the company with which a flow
// is shared, has as many flows as it may have.
func checkRoom(ctx context.Context, tx *sqldb.Tx, f catalog.SavedFlow) error {
	own, shared, err := catalog.CountFlows(ctx, tx, f)
	switch {
	case err != nil:
		return err
	case own >= MaxFlows:
		return fault.New(fault.Invalid, fmt.Sprintf("An account can have at most %d flows. Delete one first.", MaxFlows))
	case shared >= MaxFlows:
		return fault.New(fault.Invalid, fmt.Sprintf("A company can share at most %d flows. Stop sharing one first.", MaxFlows)).On("shared")
	}
	return nil
}

// authorize returns an error unless the principal may save or delete a flow that
// a person made.
func authorize(p principal.Principal, d Draft, madeBy string) error {
	switch {
	case p.PersonID != madeBy && !p.May(company.ManageTeam):
		return fault.New(fault.Forbidden, "Only the person who made this flow, or a manager of the team, can change it.").With("reason", "permission")
	case d.Shared && (p.CompanyID == "" || !p.May(company.ManageTeam)):
		return fault.New(fault.Forbidden, "Only a manager of a team can share a flow with the company.").With("reason", "permission").On("shared")
	}
	return nil
}

// Update saves a new version of a flow. version is the version that the caller
// has read.
func (s *Service) Update(ctx context.Context, p principal.Principal, id string, version int64, d Draft) (Flow, error) {
	c, err := s.checkAs(ctx, p, id, d)
	if err != nil {
		return Flow{}, err
	}
	if err := c.checkValid(); err != nil {
		return Flow{}, err
	}
	var saved catalog.SavedFlow
	err = s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if err := lock(ctx, tx, p); err != nil {
			return err
		}
		one, err := s.find(ctx, tx, p, id)
		if err != nil {
			return err
		}
		if err := authorize(p, d, one.PersonID); err != nil {
			return err
		}
		before := one
		one.Name = c.name
		one.Definition = c.definition
		one.CompanyID = ""
		if d.Shared {
			one.CompanyID = p.CompanyID
		}
		isRepeated := before.Version == version+1 && before.Definition == one.Definition && before.CompanyID == one.CompanyID
		if isRepeated { // the response to the first request was lost
			saved = before
			return nil
		}
		if before.Version != version {
			return errVersion(before.Version)
		}
		if err := checkRoom(ctx, tx, one); err != nil {
			return err
		}
		ok, err := catalog.UpdateFlow(ctx, tx, &one, p.PersonID)
		if err == nil && !ok {
			err = errVersion(one.Version + 1)
		}
		saved = one
		return err
	})
	if err != nil {
		return Flow{}, err
	}
	return complete(saved)
}

// find returns a flow of the principal's account.
func (s *Service) find(ctx context.Context, tx *sqldb.Tx, p principal.Principal, id string) (catalog.SavedFlow, error) {
	f, ok, err := catalog.FlowByID(ctx, tx, id)
	if err == nil && (!ok || f.AccountID != p.AccountID) {
		err = errNoFlow
	}
	return f, err
}

// Delete deletes a flow. Runs that were accepted go on.
func (s *Service) Delete(ctx context.Context, p principal.Principal, id string) error {
	return s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		f, err := s.find(ctx, tx, p, id)
		if err != nil {
			return err
		}
		if err := authorize(p, Draft{}, f.PersonID); err != nil {
			return err
		}
		ok, err := catalog.RemoveFlow(ctx, tx, f)
		if err == nil && !ok {
			err = errNoFlow
		}
		return err
	})
}

// Get returns a flow that the principal's account can use: its own, or one that
// is shared with its company.
func (s *Service) Get(ctx context.Context, p principal.Principal, id string) (Flow, error) {
	var saved catalog.SavedFlow
	err := s.DB.Read(ctx, func(tx *sqldb.Tx) error {
		f, ok, err := catalog.FlowByID(ctx, tx, id)
		isShared := f.CompanyID != "" && f.CompanyID == p.CompanyID
		if err == nil && (!ok || f.AccountID != p.AccountID && !isShared) {
			err = errNoFlow
		}
		saved = f
		return err
	})
	if err != nil {
		return Flow{}, err
	}
	return complete(saved)
}

// List returns the flows that the principal's account can use, oldest first.
func (s *Service) List(ctx context.Context, p principal.Principal) ([]Flow, error) {
	var saved []catalog.SavedFlow
	err := s.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
		saved, err = catalog.ListFlows(ctx, tx, p.AccountID, p.CompanyID)
		return err
	})
	if err != nil {
		return nil, err
	}
	return completeAll(saved)
}

// ListOwn returns the flows that were saved for an account, oldest first.
func ListOwn(ctx context.Context, tx *sqldb.Tx, accountID string) ([]Flow, error) {
	saved, err := catalog.ListFlows(ctx, tx, accountID, "")
	if err != nil {
		return nil, err
	}
	return completeAll(saved)
}

// Erase deletes the flows of an account and everything that people wrote in
// them.
func Erase(ctx context.Context, tx *sqldb.Tx, accountID string) error {
	return catalog.EraseFlows(ctx, tx, accountID)
}

// Version is a saved version of a flow.
type Version struct {
	catalog.FlowVersion
	Draft Draft
}

// Versions returns the saved versions of a flow of the principal's account,
// newest first.
func (s *Service) Versions(ctx context.Context, p principal.Principal, id string) ([]Version, error) {
	var stored []catalog.FlowVersion
	err := s.DB.Read(ctx, func(tx *sqldb.Tx) (err error) {
		if _, err := s.find(ctx, tx, p, id); err != nil {
			return err
		}
		stored, err = catalog.FlowVersions(ctx, tx, id)
		return err
	})
	if err != nil {
		return nil, err
	}
	all := make([]Version, 0, len(stored))
	for _, one := range stored {
		d, err := readDraft(one.Definition)
		if err != nil {
			return nil, err
		}
		all = append(all, Version{FlowVersion: one, Draft: d})
	}
	return all, nil
}

func completeAll(saved []catalog.SavedFlow) ([]Flow, error) {
	all := make([]Flow, 0, len(saved))
	for _, one := range saved {
		f, err := complete(one)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

// complete adds the draft to a saved flow.
func complete(saved catalog.SavedFlow) (Flow, error) {
	d, err := readDraft(saved.Definition)
	d.Shared = saved.CompanyID != ""
	return Flow{SavedFlow: saved, Draft: d}, err
}

// readDraft returns the draft from which a definition was made.
func readDraft(definition string) (Draft, error) {
	all, err := catalog.DecodeObject(definition)
	if err != nil {
		return Draft{}, fmt.Errorf("read flow: %w", err)
	}
	d := Draft{}
	d.Name, _ = all["name"].(string)
	d.Description, _ = all["description"].(string)
	d.Fields, _ = all["fields"].([]any)
	engine, _ := all["engine"].(map[string]any)
	with, _ := engine["with"].(map[string]any)
	d.Steps, _ = with["steps"].([]any)
	d.Results, _ = with["results"].([]any)
	return d, nil
}
