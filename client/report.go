package client

import (
	"context"
	"io"
	"net/http"
)

// UsageCSV returns the whole report of Usage as a CSV file. The caller must
// close it. The file is whole only if reading it ends with io.EOF.
func (g *ReportsCalls) UsageCSV(ctx context.Context, p ReportsUsageParams) (io.ReadCloser, error) {
	query := p.query()
	query.Set("format", "csv")
	return callStream(ctx, g.client, &request{method: http.MethodGet, path: "/reports/usage", query: query})
}

// RunsCSV returns the whole report of Runs as a CSV file; see UsageCSV.
func (g *ReportsCalls) RunsCSV(ctx context.Context, p ReportsRunsParams) (io.ReadCloser, error) {
	query := p.query()
	query.Set("format", "csv")
	return callStream(ctx, g.client, &request{method: http.MethodGet, path: "/reports/runs", query: query})
}
