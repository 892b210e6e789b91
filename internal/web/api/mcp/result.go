package mcp

import (
	"context"
	"fmt"
	"io"
	"mime"
	"path"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"atelier/internal/catalog/toolschema"
	"atelier/internal/file/blob"
	"atelier/internal/run/generation"
	"atelier/internal/run/run"
)

// runResult describes a run to programs.
type runResult struct {
	RunID         string       `json:"run_id"`
	Status        string       `json:"status"`
	Tool          string       `json:"tool,omitempty"`
	TokensCharged int64        `json:"tokens_charged"`
	Seed          int64        `json:"seed"`
	Results       []fileResult `json:"results"`
	Error         string       `json:"error,omitempty"`
}

// fileResult describes a result to programs.
type fileResult struct {
	LibraryID string `json:"library_id"`
	MimeType  string `json:"mime_type"`
	Size      int64  `json:"size_bytes"`
	Width     int64  `json:"width,omitempty"`
	Height    int64  `json:"height,omitempty"`
	URL       string `json:"url,omitempty"`
	Note      string `json:"note,omitempty"`
}

// describeRun describes a run. URLs are signed for the caller.
func (c *toolCall) describeRun(rec generation.Record) runResult {
	out := runResult{
		RunID:         rec.ID,
		Status:        rec.State.PublicStatus(),
		Tool:          rec.ToolName,
		TokensCharged: rec.TokensCharged,
		Seed:          rec.Seed,
		Results:       []fileResult{},
		Error:         rec.ErrorText,
	}
	shown := rec.RunJSON(c.handler.Links, c.exchange.call.Principal.PersonID)
	for i, o := range rec.Outputs {
		one := fileResult{
			LibraryID: shown.Outputs[i].ID,
			MimeType:  o.MimeType,
			Size:      o.Size,
			Width:     o.Width,
			Height:    o.Height,
			Note:      o.Note,
		}
		if shown.Outputs[i].URL != nil {
			one.URL = *shown.Outputs[i].URL
		}
		out.Results = append(out.Results, one)
	}
	return out
}

// pendingResult describes a run that has not ended.
func (c *toolCall) pendingResult(rec generation.Record) *sdk.CallToolResult {
	text := fmt.Sprintf("The run %s is %s and goes on. Call get_run with this id later to get its results.", rec.ID, rec.Stage())
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}, StructuredContent: c.describeRun(rec)}
}

// resultOf converts a run to the result of a call: a text, and pictures and
// sound as content if they are small, and as links otherwise.
func (c *toolCall) resultOf(ctx context.Context, rec generation.Record) (*sdk.CallToolResult, error) {
	if !rec.State.IsEnded() {
		return c.pendingResult(rec), nil
	}
	about := c.describeRun(rec)
	result := &sdk.CallToolResult{StructuredContent: about}
	problem := ""
	if rec.State == run.Cancelled {
		problem = "was cancelled."
	}
	if rec.State == run.Failed {
		problem = fmt.Sprintf("failed (%s): %s", rec.ErrorCode, rec.ErrorText)
	}
	if problem != "" {
		result.IsError = true
		result.Content = []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf("The run %s %s It cost %s.", rec.ID, problem, toolschema.FormatTokens(rec.TokensCharged))}}
		return result, nil
	}

	made := fmt.Sprintf("%d results", len(rec.Outputs))
	if len(rec.Outputs) == 1 {
		made = "1 result"
	}
	lines := []string{fmt.Sprintf("%s: %s for %s, seed %d.", about.Tool, made, toolschema.FormatTokens(rec.TokensCharged), rec.Seed)}
	var contents []sdk.Content
	for i, o := range rec.Outputs {
		one := about.Results[i]
		line := "Library id " + one.LibraryID + " (" + one.MimeType + ")"
		if one.Note != "" {
			line += ": " + one.Note
		}
		lines = append(lines, line)
		more, err := c.contentsOf(ctx, o, one)
		if err != nil {
			return nil, err
		}
		contents = append(contents, more...)
	}
	result.Content = append([]sdk.Content{&sdk.TextContent{Text: strings.Join(lines, "\n")}}, contents...)
	return result, nil
}

// contentsOf returns the content for one result: the file itself if the response
// has room for it, and otherwise a link and the thumbnail. It returns nothing for a
// result that was deleted.
func (c *toolCall) contentsOf(ctx context.Context, o run.Output, about fileResult) ([]sdk.Content, error) {
	kind, _, _ := strings.Cut(o.MimeType, "/")
	meta := sdk.Meta{"library_id": about.LibraryID}
	if o.Expired {
		return nil, nil
	}
	if o.Size > c.room || kind != "image" && kind != "audio" && kind != "text" {
		all := []sdk.Content{&sdk.ResourceLink{
			URI:      about.URL,
			Name:     about.LibraryID,
			MIMEType: o.MimeType,
			Size:     &o.Size,
			Meta:     meta,
		}}
		thumbnail, err := c.thumbnailOf(ctx, o)
		if thumbnail != nil {
			all = append(all, thumbnail)
		}
		return all, err
	}
	file, err := blob.OpenVerified(ctx, c.handler.Blobs, blob.File{Key: o.Blob, Size: o.Size, SHA256: o.SHA256})
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(file)
	if err != nil {
		return nil, err
	}
	c.room -= o.Size
	var content sdk.Content = &sdk.TextContent{Text: string(data), Meta: meta}
	switch kind {
	case "image":
		content = &sdk.ImageContent{Data: data, MIMEType: o.MimeType, Meta: meta}
	case "audio":
		content = &sdk.AudioContent{Data: data, MIMEType: o.MimeType, Meta: meta}
	}
	return []sdk.Content{content}, nil
}

// thumbnailOf returns the thumbnail of a result, or nil if it has none or the
// response has no room for it.
func (c *toolCall) thumbnailOf(ctx context.Context, o run.Output) (sdk.Content, error) {
	if o.Thumb == "" {
		return nil, nil
	}
	file, about, err := c.handler.Blobs.Open(ctx, o.Thumb, 0, -1)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if about.Size > c.room {
		return nil, nil
	}
	data, err := io.ReadAll(file)
	if err != nil {
		return nil, err
	}
	c.room -= int64(len(data))
	return &sdk.ImageContent{Data: data, MIMEType: mime.TypeByExtension(path.Ext(o.Thumb)), Meta: sdk.Meta{"thumbnail": true}}, nil
}
