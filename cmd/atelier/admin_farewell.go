package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"

	"atelier/internal/account/dossier"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
)

type personExportCmd struct {
	jsonFlag
	Email string `required:"" help:"Whom." placeholder:"ADDRESS"`
	Out   string `required:"" help:"The file to write. It must not be there." placeholder:"FILE"`
}

func (c personExportCmd) Run(p *program) error {
	return p.withPeople(func(ctx context.Context, pp *people) error {
		who, err := pp.byEmail(ctx, c.Email)
		if err != nil {
			return err
		}
		blobs, err := p.openBlobsForReading(ctx)
		if err != nil {
			return err
		}
		defer blobs.Close()
		archive, err := pp.dossier(blobs).Export(ctx, principal.Operator(), who.ID)
		if err != nil {
			return err
		}
		if err := saveArchive(ctx, archive, c.Out); err != nil {
			return err
		}
		return p.print(c.JSON, map[string]string{"uid": who.ID, "file": c.Out}, "written to "+c.Out)
	})
}

// saveArchive writes an archive into a new file that only its owner reads. One that
// could not be finished is removed.
func saveArchive(ctx context.Context, archive *dossier.Archive, name string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	if err = archive.Write(ctx, w, nil); err == nil {
		err = w.Flush()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

type personDeleteCmd struct {
	jsonFlag
	Email string `required:"" help:"Whom." placeholder:"ADDRESS"`
	Yes   bool   `help:"Do it. Without it nothing is changed."`
}

func (c personDeleteCmd) Run(p *program) error {
	return p.withPeople(func(ctx context.Context, pp *people) error {
		who, err := pp.byEmail(ctx, c.Email)
		if err != nil {
			return err
		}
		if !c.Yes {
			return usageError{fmt.Errorf("this ends the account of %s for good and erases its uploads, results, boards and prompts; say --yes to do it", who.Email)}
		}
		d := pp.dossier(nil)
		if err := d.Delete(ctx, principal.Operator(), who.ID, who.Email); err != nil {
			return err
		}
		// Where nobody works on the queue now, this is done all the same.
		if err := d.Erase(ctx, who.ID); err != nil {
			return err
		}
		return p.print(c.JSON, map[string]string{"uid": who.ID}, "deleted "+who.ID)
	})
}

// byEmail finds a person by address.
func (pp *people) byEmail(ctx context.Context, email string) (who person.Person, err error) {
	err = pp.db.Read(ctx, func(tx *sqldb.Tx) (err error) {
		who, err = person.ByEmail(ctx, tx, email)
		return err
	})
	return who, err
}
