package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"atelier/client"
)

type libraryCmd struct {
	List     libraryListCmd     `cmd:"" default:"withargs" help:"List results of your runs."`
	Show     libraryShowCmd     `cmd:"" help:"Show a result and the inputs it was made with."`
	Favorite libraryFavoriteCmd `cmd:"" help:"Mark a result as a favourite, or remove the mark."`
	Delete   libraryDeleteCmd   `cmd:"" help:"Delete a result; it can be restored for a while."`
	Restore  libraryRestoreCmd  `cmd:"" help:"Restore a deleted result."`
}

type libraryListCmd struct {
	jsonFlag
	serviceFlags
	pageFlags
	Search    []string `arg:"" optional:"" help:"Only results with these words in the prompt."`
	Type      string   `help:"Only results of this type: image, video, audio or 3d." enum:",image,video,audio,3d" default:"" placeholder:"TYPE"`
	Tool      string   `help:"Only results of this tool." placeholder:"TOOL" complete:"tools"`
	Favorites bool     `help:"Only favourites."`
	Since     string   `help:"Only results since this day, such as 2026-11-01." placeholder:"DAY"`
	Until     string   `help:"Only results before this day." placeholder:"DAY"`
}

// mediaByName are the types of results as the API names them.
var mediaByName = map[string]client.Medium{"image": "IMG", "video": "VIDEO", "audio": "AUDIO", "3d": "ASSET_3D"}

func (c libraryListCmd) Run(p *program) error {
	service, err := c.connect(p)
	if err != nil {
		return err
	}
	params := client.LibraryListParams{Q: strings.Join(c.Search, " "), Type: mediaByName[c.Type]}
	if c.Favorites {
		params.Favorited = &c.Favorites
	}
	if params.StartUTC, err = parseDay("--since", c.Since); err != nil {
		return err
	}
	if params.EndUTC, err = parseDay("--until", c.Until); err != nil {
		return err
	}
	if c.Tool != "" {
		tool, err := findTool(p.ctx, service, c.Tool)
		if err != nil {
			return err
		}
		params.ToolID = tool.ID
	}
	return remoteList[client.LibraryItem]{
		columns: []string{"CREATED", "TYPE", "SIZE", "BYTES", "PROMPT", "ID"},
		read: func(cursor string, limit int64) ([]client.LibraryItem, *string, error) {
			params.Cursor = cursor
			params.Limit = limit
			page, err := service.Library.List(p.ctx, params)
			if err != nil {
				return nil, nil, err
			}
			return page.Data, page.NextCursor, nil
		},
		cells: func(i client.LibraryItem) []string {
			return []string{showTime(i.Created), i.MimeType, showSize(i), showBytes(i.SizeBytes), shortenWords(showOptional(i.Prompt), 40), i.ID}
		},
	}.printPages(p, c.JSON, c.pageFlags)
}

// showSize formats the dimensions or the length of a result.
func showSize(i client.LibraryItem) string {
	switch {
	case i.Width != nil && i.Height != nil:
		return fmt.Sprintf("%dx%d", *i.Width, *i.Height)
	case i.DurationSeconds != nil:
		return fmt.Sprintf("%.1f s", *i.DurationSeconds)
	}
	return "-"
}

// shortenWords shortens a text for a table.
func shortenWords(text string, most int) string {
	text = strings.Join(strings.Fields(text), " ")
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most-1]) + "…"
}

// parseDay reads a day or a time of a flag. It returns the zero time for "".
func parseDay(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, usageError{fmt.Errorf("%s: %q is not a day such as 2026-11-01, nor a time such as 2026-11-01T12:00:00Z", flag, text)}
}

// resultFlags are the flags of commands about one result.
type resultFlags struct {
	jsonFlag
	serviceFlags
	Result string `arg:"" help:"Id of the result." complete:"results"`
}

type libraryShowCmd struct{ resultFlags }

func (c libraryShowCmd) Run(p *program) error {
	service, err := c.connect(p)
	if err != nil {
		return err
	}
	item, err := service.Library.Get(p.ctx, c.Result)
	if err != nil {
		return err
	}
	if c.JSON {
		return p.printResult(true, item, "")
	}
	rows := [][]string{
		{"id", item.ID},
		{"type", item.MimeType},
		{"bytes", showBytes(item.SizeBytes)},
		{"created", showTime(item.Created)},
		{"run", item.RequestID},
		{"prompt", showOptional(item.Prompt)},
		{"note", showOptional(item.Note)},
		{"inputs", describeInputs(item.Inputs)},
	}
	for i := range rows {
		rows[i][1] = cleanText(rows[i][1])
	}
	return p.printFields(rows)
}

type libraryFavoriteCmd struct {
	resultFlags
	Remove bool `help:"Remove the mark."`
}

func (c libraryFavoriteCmd) Run(p *program) error {
	service, err := c.connect(p)
	if err != nil {
		return err
	}
	done := "marked "
	change := service.Library.AddFavorite
	if c.Remove {
		done = "removed the mark of "
		change = service.Library.RemoveFavorite
	}
	if err := change(p.ctx, c.Result); err != nil {
		return err
	}
	return p.printResult(c.JSON, map[string]any{"id": c.Result, "favorited": !c.Remove}, done+c.Result)
}

type libraryDeleteCmd struct{ resultFlags }

func (c libraryDeleteCmd) Run(p *program) error {
	service, err := c.connect(p)
	if err != nil {
		return err
	}
	if err := service.Library.Delete(p.ctx, c.Result); err != nil {
		return err
	}
	return p.printResult(c.JSON, map[string]string{"id": c.Result}, "deleted "+c.Result+"; atelier library restore brings it back")
}

type libraryRestoreCmd struct{ resultFlags }

func (c libraryRestoreCmd) Run(p *program) error {
	service, err := c.connect(p)
	if err != nil {
		return err
	}
	item, err := service.Library.Restore(p.ctx, c.Result)
	if err != nil {
		return err
	}
	return p.printResult(c.JSON, item, "restored "+item.ID)
}

var errNoTools = errors.New("no tools are available to this account")
