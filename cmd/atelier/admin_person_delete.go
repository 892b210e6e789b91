package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"

	"atelier/internal/account/personaldata"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/person"
	"atelier/internal/people/principal"
)

type personExportCmd struct {
	jsonFlag
	Email string `required:"" help:"The person's e-mail address." placeholder:"ADDRESS"`
	Out   string `required:"" help:"File to write; must not exist." placeholder:"FILE"`
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
		archive, err := pp.personalData(blobs).ExportPerson(ctx, principal.Operator(), who.ID)
		if err != nil {
			return err
		}
		if err := saveArchive(ctx, archive, c.Out); err != nil {
			return err
		}
		return p.printResult(c.JSON, map[string]string{"uid": who.ID, "file": c.Out}, "written to "+c.Out)
	})
}

// saveArchive writes an archive of a person's data to a new file that only its
// owner can read. It removes the file if writing fails.
func saveArchive(ctx context.Context, archive *personaldata.Archive, name string) error {
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
	Email string `required:"" help:"The person's e-mail address." placeholder:"ADDRESS"`
	Yes   bool   `help:"Confirm the deletion; without it nothing is changed."`
}

func (c personDeleteCmd) Run(p *program) error {
	return p.withPeople(func(ctx context.Context, pp *people) error {
		who, err := pp.byEmail(ctx, c.Email)
		if err != nil {
			return err
		}
		if !c.Yes {
			return usageError{fmt.Errorf("this deletes the account of %s for good and erases its uploads, results, boards and prompts; confirm with --yes", who.Email)}
		}
		d := pp.personalData(nil)
		if err := d.DeletePerson(ctx, principal.Operator(), who.ID, who.Email); err != nil {
			return err
		}
		// Erase the data now instead of leaving this to a worker, because
		// perhaps no worker is running.
		if err := d.ErasePerson(ctx, who.ID); err != nil {
			return err
		}
		return p.printResult(c.JSON, map[string]string{"uid": who.ID}, "deleted "+who.ID)
	})
}

// byEmail returns the person with the given e-mail address.
func (pp *people) byEmail(ctx context.Context, email string) (who person.Person, err error) {
	err = pp.db.Read(ctx, func(tx *sqldb.Tx) (err error) {
		who, err = person.ByEmail(ctx, tx, email)
		return err
	})
	return who, err
}
