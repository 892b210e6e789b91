package main

import (
	"fmt"
	"strconv"

	"atelier/client"
)

type boardsCmd struct {
	List    boardsListCmd    `cmd:"" default:"withargs" help:"List the boards."`
	Show    boardsShowCmd    `cmd:"" help:"Show a board and what is on it."`
	Create  boardsCreateCmd  `cmd:"" help:"Create a board."`
	Rename  boardsRenameCmd  `cmd:"" help:"Rename a board."`
	Delete  boardsDeleteCmd  `cmd:"" help:"Delete a board; it can be restored for a while."`
	Restore boardsRestoreCmd `cmd:"" help:"Restore a deleted board."`
}

type boardsListCmd struct {
	jsonFlag
	serviceFlags
	pageFlags
	Deleted bool `help:"List the boards that can be restored."`
}

func (c boardsListCmd) Run(p *program) error {
	service, err := c.connect(p)
	if err != nil {
		return err
	}
	params := client.BoardsListParams{}
	if c.Deleted {
		params.Deleted = &c.Deleted
	}
	return remoteList[client.BoardSummary]{
		columns: []string{"BOARD", "ITEMS", "CHANGED", "ID"},
		read: func(cursor string, limit int64) ([]client.BoardSummary, *string, error) {
			params.Cursor = cursor
			params.Limit = limit
			page, err := service.Boards.List(p.ctx, params)
			if err != nil {
				return nil, nil, err
			}
			return page.Data, page.NextCursor, nil
		},
		cells: func(b client.BoardSummary) []string {
			return []string{b.Name, strconv.FormatInt(b.NodeCount, 10), showTime(b.Updated), b.ID}
		},
	}.printPages(p, c.JSON, c.pageFlags)
}

// boardFlags are the flags of commands about one board.
type boardFlags struct {
	jsonFlag
	serviceFlags
	Board string `arg:"" help:"Id of the board." complete:"boards"`
}

type boardsShowCmd struct{ boardFlags }

func (c boardsShowCmd) Run(p *program) error {
	service, err := c.connect(p)
	if err != nil {
		return err
	}
	var board *client.Board
	for cursor := ""; ; {
		page, err := service.Boards.Get(p.ctx, c.Board, client.BoardsGetParams{Cursor: cursor})
		if err != nil {
			return err
		}
		if board == nil {
			board = page
		} else {
			board.Nodes = append(board.Nodes, page.Nodes...)
		}
		if page.NextCursor == nil || *page.NextCursor == "" {
			break
		}
		cursor = *page.NextCursor
	}
	board.NextCursor = nil
	board.HasMore = false
	if c.JSON {
		return p.printResult(true, board, "")
	}
	fmt.Fprintf(p.stdout, "%s: %s, changed %s\n\n", cleanCells([]string{board.Name})[0],
		countNoun(int(board.NodeCount), "item", "items"), showTime(board.Updated))
	table := [][]string{{"ITEM", "PLACE", "SIZE", "CONTENT"}}
	for _, n := range board.Nodes {
		content := n.Text
		if n.Ref != nil {
			content = *n.Ref
		}
		table = append(table, cleanCells([]string{
			string(n.Kind), fmt.Sprintf("%.0f,%.0f", n.X, n.Y), fmt.Sprintf("%.0fx%.0f", n.Width, n.Height), content,
		}))
	}
	return p.printList(table)
}

type boardsCreateCmd struct {
	jsonFlag
	serviceFlags
	Name string `arg:"" help:"Name of the board."`
}

func (c boardsCreateCmd) Run(p *program) error {
	service, err := c.connect(p)
	if err != nil {
		return err
	}
	board, err := service.Boards.Create(p.ctx, client.BoardDraft{Name: c.Name})
	if err != nil {
		return err
	}
	return p.printResult(c.JSON, board, board.ID)
}

type boardsRenameCmd struct {
	boardFlags
	Name string `arg:"" help:"New name of the board."`
}

func (c boardsRenameCmd) Run(p *program) error {
	service, err := c.connect(p)
	if err != nil {
		return err
	}
	board, err := service.Boards.Rename(p.ctx, c.Board, client.BoardDraft{Name: c.Name}, client.BoardsRenameParams{})
	if err != nil {
		return err
	}
	return p.printResult(c.JSON, board, "renamed "+board.ID)
}

type boardsDeleteCmd struct{ boardFlags }

func (c boardsDeleteCmd) Run(p *program) error {
	service, err := c.connect(p)
	if err != nil {
		return err
	}
	if err := service.Boards.Delete(p.ctx, c.Board, client.BoardsDeleteParams{}); err != nil {
		return err
	}
	return p.printResult(c.JSON, map[string]string{"id": c.Board}, "deleted "+c.Board+"; atelier boards restore brings it back")
}

type boardsRestoreCmd struct{ boardFlags }

func (c boardsRestoreCmd) Run(p *program) error {
	service, err := c.connect(p)
	if err != nil {
		return err
	}
	board, err := service.Boards.Restore(p.ctx, c.Board)
	if err != nil {
		return err
	}
	return p.printResult(c.JSON, board, "restored "+board.ID)
}
