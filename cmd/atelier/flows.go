package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"atelier/client"
	"atelier/internal/catalog/catalog"
)

type flowsCmd struct {
	List     flowsListCmd     `cmd:"" default:"withargs" help:"List the saved flows that you can run."`
	Show     flowsShowCmd     `cmd:"" help:"Print a saved flow as a file for atelier flows save."`
	Save     flowsSaveCmd     `cmd:"" help:"Save a flow, or a new version of one."`
	Check    flowsCheckCmd    `cmd:"" help:"Report every problem of a flow, and its price; saves nothing."`
	Draft    flowsDraftCmd    `cmd:"" help:"Print a flow that repeats the runs which led to a result; saves nothing."`
	Versions flowsVersionsCmd `cmd:"" help:"List the versions of a saved flow."`
	Delete   flowsDeleteCmd   `cmd:"" help:"Delete a saved flow; its results stay."`
}

// errFlowProblems ends a command that has printed the problems of a flow.
var errFlowProblems = errors.New("the flow has problems")

type flowsListCmd struct {
	jsonFlag
	serviceFlags
}

func (c flowsListCmd) Run(p *program) error {
	service, err := c.connect(p)
	if err != nil {
		return err
	}
	return remoteList[client.FlowSummary]{
		columns: []string{"FLOW", "TOOL", "VERSION", "SHARED", "CHANGED", "ID"},
		read: func(string, int64) ([]client.FlowSummary, *string, error) {
			list, err := service.Flows.List(p.ctx)
			if err != nil {
				return nil, nil, err
			}
			return list.Data, nil, nil
		},
		cells: func(f client.FlowSummary) []string {
			isShared := "-"
			if f.Shared {
				isShared = "company"
			}
			return []string{f.Name, safeSlug(f.Slug), strconv.FormatInt(f.Version, 10), isShared, showTime(f.Updated), f.ID}
		},
	}.printPages(p, c.JSON, pageFlags{All: true})
}

// flowFlags are the flags of commands about one saved flow.
type flowFlags struct {
	jsonFlag
	serviceFlags
	Flow string `arg:"" help:"The flow's name, tool or id, as in atelier flows list." complete:"flows"`
}

// find returns a client of the service, and the flow that the person means.
func (f flowFlags) find(p *program) (*client.Client, *client.FlowSummary, error) {
	service, err := f.connect(p)
	if err != nil {
		return nil, nil, err
	}
	flow, err := findFlow(p.ctx, service, f.Flow)
	return service, flow, err
}

// findFlow finds a saved flow by its id, its slug or its display name.
func findFlow(ctx context.Context, service *client.Client, name string) (*client.FlowSummary, error) {
	list, err := service.Flows.List(ctx)
	if err != nil {
		return nil, err
	}
	var named []client.FlowSummary
	for _, f := range list.Data {
		if f.ID == name || f.Slug == name {
			return &f, nil
		}
		if strings.EqualFold(f.Name, name) {
			named = append(named, f)
		}
	}
	switch len(named) {
	case 0:
		return nil, statusError{fmt.Errorf("there is no flow %q; atelier flows lists the saved ones", name), exitNotFound}
	case 1:
		return &named[0], nil
	}
	var slugs []string
	for _, f := range named {
		slugs = append(slugs, safeSlug(f.Slug))
	}
	return nil, usageError{fmt.Errorf("%d flows are called %q: %s", len(named), name, strings.Join(slugs, ", "))}
}

type flowsShowCmd struct {
	flowFlags
	Version int64 `help:"Earlier version to print (default: the current one)." placeholder:"N"`
}

func (c flowsShowCmd) Run(p *program) error {
	service, found, err := c.find(p)
	if err != nil {
		return err
	}
	if c.Version != 0 && c.Version != found.Version {
		return c.showVersion(p, service, found)
	}
	flow, err := service.Flows.Get(p.ctx, found.ID)
	if err != nil {
		return err
	}
	if c.JSON {
		return p.printResult(true, flow, "")
	}
	return printFlowFile(p.stdout, describeFlow(found, flow.Version), client.FlowDraft{
		Name:        flow.Name,
		Description: &flow.Description,
		Fields:      flow.Fields,
		Steps:       flow.Steps,
		Results:     flow.Results,
		Shared:      &flow.Shared,
	})
}

// showVersion shows an earlier version of a flow.
func (c flowsShowCmd) showVersion(p *program, service *client.Client, found *client.FlowSummary) error {
	list, err := service.Flows.ListVersions(p.ctx, found.ID)
	if err != nil {
		return err
	}
	for _, v := range list.Data {
		if v.Version != c.Version {
			continue
		}
		if c.JSON {
			return p.printResult(true, v, "")
		}
		return printFlowFile(p.stdout, describeFlow(found, v.Version), client.FlowDraft{
			Name:        v.Name,
			Description: &v.Description,
			Fields:      v.Fields,
			Steps:       v.Steps,
			Results:     v.Results,
		})
	}
	return statusError{fmt.Errorf("there is no version %d of this flow; atelier flows versions lists those that are kept", c.Version), exitNotFound}
}

func describeFlow(f *client.FlowSummary, version int64) string {
	return cleanText(fmt.Sprintf("%s, version %d, id %s", safeSlug(f.Slug), version, f.ID))
}

// flowFileFlags are the flags of commands that read a flow from a file.
type flowFileFlags struct {
	jsonFlag
	serviceFlags
	File string `arg:"" help:"Flow in YAML or JSON; - reads standard input. docs/flows.md describes it." complete:"files"`
}

// check reads the file and asks the service for its problems and its price. The
// price is nil if the problems do not let it be known.
func (c flowFileFlags) check(p *program, service *client.Client) (*flowFile, *client.FlowPrice, error) {
	f, err := readFlowFile(p.streams, c.File)
	if err != nil || len(f.problems) > 0 {
		return f, nil, err
	}
	checked, err := service.Flows.Check(p.ctx, f.draft)
	if f.addRefusal(err) { // such as a name that is too long
		return f, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	f.addRemarks(checked.Problems)
	catalog.SortProblems(f.problems)
	return f, checked.Price, nil
}

type flowsCheckCmd struct{ flowFileFlags }

func (c flowsCheckCmd) Run(p *program) error {
	service, err := c.connect(p)
	if err != nil {
		return err
	}
	f, price, err := c.check(p, service)
	if err != nil {
		return err
	}
	if c.JSON {
		err = p.printResult(true, map[string]any{"problems": problemRows(f.problems), "price": price}, "")
	} else {
		if price != nil {
			fmt.Fprintf(p.stdout, "price of the flow: %s\n", cleanText(price.Formula))
		}
		err = p.printProblems(f.problems, "no problems")
	}
	if err == nil && len(f.problems) > 0 {
		return errFlowProblems
	}
	return err
}

type flowsSaveCmd struct {
	flowFileFlags
	ID      string `name:"id" help:"Flow of which this is a new version: its id, tool or name." placeholder:"ID" complete:"flows"`
	BasedOn int64  `help:"Version that the file was made from; a newer one is not replaced (default: the current version)." placeholder:"N"`
}

// savedFlowRow is a saved flow with its price, as it is printed in JSON.
type savedFlowRow struct {
	*client.Flow
	Price *client.FlowPrice `json:"price"`
}

func (c flowsSaveCmd) Run(p *program) error {
	if c.BasedOn != 0 && c.ID == "" {
		return usageError{errors.New("--based-on needs --id")}
	}
	service, err := c.connect(p)
	if err != nil {
		return err
	}
	f, price, err := c.check(p, service)
	if err != nil {
		return err
	}
	var flow *client.Flow
	if len(f.problems) == 0 {
		flow, err = c.save(p, service, f.draft)
	}
	switch {
	case f.addRefusal(err), len(f.problems) > 0:
		if err := p.printProblems(f.problems, ""); err != nil {
			return err
		}
		return errFlowProblems
	case err != nil:
		return err
	}
	if c.JSON {
		return p.printResult(true, savedFlowRow{flow, price}, "")
	}
	return p.printFields([][]string{
		{"id", flow.ID},
		{"tool", safeSlug(flow.Slug)},
		{"version", strconv.FormatInt(flow.Version, 10)},
		{"price", describeFlowPrice(price)},
	})
}

func describeFlowPrice(price *client.FlowPrice) string {
	if price == nil {
		return "-"
	}
	return cleanText(price.Formula)
}

// save saves a new flow, or a new version of the one that --id names.
func (c flowsSaveCmd) save(p *program, service *client.Client, draft client.FlowDraft) (*client.Flow, error) {
	if c.ID == "" {
		return service.Flows.Create(p.ctx, draft)
	}
	found, err := findFlow(p.ctx, service, c.ID)
	if err != nil {
		return nil, err
	}
	change := client.FlowChange{
		Version:     found.Version,
		Name:        draft.Name,
		Description: draft.Description,
		Fields:      draft.Fields,
		Steps:       draft.Steps,
		Results:     draft.Results,
		Shared:      draft.Shared,
	}
	if c.BasedOn != 0 {
		change.Version = c.BasedOn
	}
	if change.Shared == nil { // a file that says nothing about it does not end the sharing
		change.Shared = &found.Shared
	}
	return service.Flows.Change(p.ctx, found.ID, change)
}

type flowsDraftCmd struct {
	jsonFlag
	serviceFlags
	Result string `arg:"" help:"Id of the result, as in atelier library list." complete:"results"`
}

func (c flowsDraftCmd) Run(p *program) error {
	service, err := c.connect(p)
	if err != nil {
		return err
	}
	draft, err := service.Flows.Draft(p.ctx, client.FlowOrigin{LibraryID: c.Result})
	if err != nil {
		return err
	}
	if c.JSON {
		return p.printResult(true, draft, "")
	}
	return printFlowFile(p.stdout, "", *draft)
}

type flowsVersionsCmd struct{ flowFlags }

func (c flowsVersionsCmd) Run(p *program) error {
	service, found, err := c.find(p)
	if err != nil {
		return err
	}
	return remoteList[client.FlowVersion]{
		columns: []string{"VERSION", "SAVED", "STEPS", "NAME", "PERSON"},
		read: func(string, int64) ([]client.FlowVersion, *string, error) {
			list, err := service.Flows.ListVersions(p.ctx, found.ID)
			if err != nil {
				return nil, nil, err
			}
			return list.Data, nil, nil
		},
		cells: func(v client.FlowVersion) []string {
			return []string{strconv.FormatInt(v.Version, 10), showTime(v.Created), strconv.Itoa(len(v.Steps)), v.Name, v.UID}
		},
	}.printPages(p, c.JSON, pageFlags{All: true})
}

type flowsDeleteCmd struct{ flowFlags }

func (c flowsDeleteCmd) Run(p *program) error {
	service, found, err := c.find(p)
	if err != nil {
		return err
	}
	if err := service.Flows.Delete(p.ctx, found.ID); err != nil {
		return err
	}
	return p.printResult(c.JSON, map[string]string{"id": found.ID}, "deleted "+found.ID)
}
