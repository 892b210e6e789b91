package main

import (
	"fmt"
	"io"
	"strconv"

	"atelier/client"
)

type reportsCmd struct {
	Usage reportsUsageCmd `cmd:"" default:"withargs" help:"Report runs and tokens of a company's teams, in groups."`
	Runs  reportsRunsCmd  `cmd:"" help:"Report each run of a company's teams."`
}

// reportFlags select the runs of a report.
type reportFlags struct {
	jsonFlag
	serviceFlags
	pageFlags
	Company string `help:"Id of the company (default: the company of the access token, or your only one)." placeholder:"ID" complete:"companies"`
	Since   string `help:"First day of the report, such as 2026-11-01." placeholder:"DAY"`
	Until   string `help:"Day after the last day of the report." placeholder:"DAY"`
	Tool    string `help:"Only runs of this tool." placeholder:"TOOL" complete:"tools"`
	Email   string `help:"Only runs of this person." placeholder:"EMAIL"`
	CSV     bool   `name:"csv" help:"Print the whole report as CSV."`
}

// printCSV prints a report that the service wrote as CSV.
func (f *reportFlags) printCSV(p *program, report io.ReadCloser) error {
	defer report.Close()
	_, err := io.Copy(p.stdout, report)
	return err
}

// prepare connects to the service, and fills in the company and the tool's id.
func (f *reportFlags) prepare(p *program) (*client.Client, string, error) {
	service, err := f.connect(p)
	if err != nil {
		return nil, "", err
	}
	if f.Company == "" {
		// A company's access token has no list of companies: the service knows
		// the company then.
		if list, err := service.Companies.List(p.ctx); err == nil && len(list.Data) == 1 {
			f.Company = list.Data[0].ID
		}
	}
	if f.Tool == "" {
		return service, "", nil
	}
	tool, err := findTool(p.ctx, service, f.Tool)
	if err != nil {
		return nil, "", err
	}
	return service, tool.ID, nil
}

type reportsUsageCmd struct {
	reportFlags
	By string `help:"Groups of the rows, separated by commas: day, team, person, tool, plugin, credential, flow." default:"day" placeholder:"GROUP,…"`
}

func (c reportsUsageCmd) Run(p *program) error {
	service, toolID, err := c.prepare(p)
	if err != nil {
		return err
	}
	params := client.ReportsUsageParams{
		CompanyID: c.Company,
		StartUTC:  c.Since,
		EndUTC:    c.Until,
		GroupBy:   c.By,
		TeamID:    reportTeam(c.Team),
		ToolID:    toolID,
		Email:     c.Email,
	}
	if c.CSV {
		report, err := service.Reports.UsageCSV(p.ctx, params)
		if err != nil {
			return err
		}
		return c.printCSV(p, report)
	}
	return remoteList[client.UsageRow]{
		columns: []string{"GROUP", "RUNS", "SUCCEEDED", "FAILED", "CANCELLED", "RESULTS", "TOKENS", "SECONDS"},
		read: func(cursor string, limit int64) ([]client.UsageRow, *string, error) {
			params.Cursor = cursor
			params.Limit = limit
			page, err := service.Reports.Usage(p.ctx, params)
			if err != nil {
				return nil, nil, err
			}
			return page.Data, page.NextCursor, nil
		},
		cells: func(r client.UsageRow) []string {
			return []string{
				describeGroup(r), showCount(r.Runs), showCount(r.Succeeded), showCount(r.Failed), showCount(r.Cancelled),
				showCount(r.Results), showCount(r.TokensCharged), fmt.Sprintf("%.1f", r.GenerationSeconds),
			}
		},
	}.printPages(p, c.JSON, c.pageFlags)
}

// reportTeam returns the team of a report's filter. The team of the profile is
// none: reports are about all teams unless --team names one.
func reportTeam(flag string) string {
	if flag == personalAccount {
		return ""
	}
	return flag
}

func showCount(n int64) string { return strconv.FormatInt(n, 10) }

// describeGroup joins the names that a row of a usage report stands for.
func describeGroup(r client.UsageRow) string {
	text := ""
	for _, name := range []*string{r.Day, r.TeamName, r.Person, r.ToolName, r.FlowName, r.Plugin, r.CredentialName} {
		if name == nil {
			continue
		}
		if text != "" {
			text += ", "
		}
		text += *name
	}
	return text
}

type reportsRunsCmd struct{ reportFlags }

func (c reportsRunsCmd) Run(p *program) error {
	service, toolID, err := c.prepare(p)
	if err != nil {
		return err
	}
	params := client.ReportsRunsParams{
		CompanyID: c.Company,
		StartUTC:  c.Since,
		EndUTC:    c.Until,
		TeamID:    reportTeam(c.Team),
		ToolID:    toolID,
		Email:     c.Email,
	}
	if c.CSV {
		report, err := service.Reports.RunsCSV(p.ctx, params)
		if err != nil {
			return err
		}
		return c.printCSV(p, report)
	}
	return remoteList[client.RunRow]{
		columns: []string{"FINISHED", "STATUS", "TEAM", "PERSON", "TOOL", "RESULTS", "TOKENS", "ID"},
		read: func(cursor string, limit int64) ([]client.RunRow, *string, error) {
			params.Cursor = cursor
			params.Limit = limit
			page, err := service.Reports.Runs(p.ctx, params)
			if err != nil {
				return nil, nil, err
			}
			return page.Data, page.NextCursor, nil
		},
		cells: func(r client.RunRow) []string {
			return []string{showTime(r.Finished), r.Status, r.TeamName, r.Person, showOptional(r.ToolName), showCount(r.Results), showCount(r.TokensCharged), r.RequestID}
		},
	}.printPages(p, c.JSON, c.pageFlags)
}
