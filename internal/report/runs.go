package report

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"golang.org/x/sync/errgroup"

	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/entry"
	"ddiff/internal/report/page"
	"ddiff/internal/report/result"
	"ddiff/internal/report/sheet"
	"ddiff/internal/report/statistic"
	"ddiff/internal/restore/raster"
	"ddiff/restore/item"
)

const (
	// maxRunPictures bounds the pictures that a comparison of runs reads, in all rows together.
	maxRunPictures = 2048
	// maxMeans bounds the measurements whose mean and deviation are stored.
	maxMeans = 100
	// runFolder has the pictures mean.png and deviation.png of a measurement, in a folder with the id of its first finished run.
	runFolder = sheet.Folder + "runs/"
	// deviationWhite is the standard deviation on [0, 1] that deviation.png shows as white; black is none.
	deviationWhite = 0.2
)

// runComparison compares the runs of each measurement of a report. It holds the samples of one measurement at a time.
type runComparison struct {
	store result.Files
	// pictures are the stored pictures by the first finished item of their measurement, keys those of the files.
	pictures map[string][]page.PictureFile
	keys     []string
	means    int
	lost     []error
}

// runsOfRow collects the figures of one row.
type runsOfRow struct {
	out          aggregate.BetweenRuns
	images       []uint64
	ofMean, mean []float64
	calibrator   statistic.Calibrator
}

// compareRuns adds the comparison of runs to the rows of the summary, and stores mean and deviation of the first maxMeans
// compared measurements. A picture that cannot be read leaves out its measurement.
func compareRuns(ctx context.Context, store result.Files, s *aggregate.Summary) (*runComparison, error) {
	c := &runComparison{store: store, pictures: make(map[string][]page.PictureFile)}
	several, rows := make([][]*entry.Measurement, len(s.Rows)), 0
	for i := range s.Rows {
		several[i] = slices.DeleteFunc(s.Rows[i].Finished(), func(m *entry.Measurement) bool { return len(m.Done) < 2 })
		rows += min(1, len(several[i]))
	}
	for i, all := range several {
		row := &runsOfRow{out: aggregate.BetweenRuns{Of: len(all)}}
		for _, m := range evenly(all, maxRunPictures/max(1, rows)) {
			spread, shape, err := c.compare(ctx, row, m)
			if ctx.Err() != nil {
				return nil, fmt.Errorf("compare runs: %w", ctx.Err())
			}
			if err != nil {
				c.lost = append(c.lost, err)
				continue
			}
			if c.means++; c.means <= maxMeans {
				if err := c.write(ctx, m, spread, shape); err != nil {
					return nil, err
				}
			}
		}
		if row.out.Measurements > 0 {
			row.out.PSNROfMean, row.out.MeanPSNR = statistic.ClusterMean(row.ofMean, row.images), statistic.ClusterMean(row.mean, row.images)
			row.out.Calibration = row.calibrator.Result()
			s.Rows[i].BetweenRuns = &row.out
		}
	}
	return c, nil
}

// evenly selects measurements that have about so many pictures in all, at least one.
func evenly(all []*entry.Measurement, pictures int) []*entry.Measurement {
	total := 0
	for _, m := range all {
		total += len(m.Done)
	}
	if total <= pictures {
		return all
	}
	out := make([]*entry.Measurement, max(1, len(all)*pictures/total))
	for i := range out {
		out[i] = all[i*len(all)/len(out)]
	}
	return out
}

// compare compares the runs of one measurement. It returns an image with the shape of all.
func (c *runComparison) compare(ctx context.Context, row *runsOfRow, m *entry.Measurement) (s *statistic.Spread, first *raster.Image, err error) {
	var truth []float64
	if m.Done[0].Has(item.FileTruth) {
		img, err := c.read(ctx, m.Done[0], item.FileTruth)
		if err != nil {
			return nil, nil, err
		}
		truth = unitSamples(img)
	}
	s = &statistic.Spread{}
	sum := 0.0
	for chunk := range slices.Chunk(m.Done, result.ReadCalls) {
		images := make([]*raster.Image, len(chunk))
		group, inner := errgroup.WithContext(ctx)
		for i, e := range chunk {
			group.Go(func() (err error) {
				images[i], err = c.read(inner, e, item.FileRestored)
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return nil, nil, err
		}
		for i, img := range images { // in order, so that the sums do not depend on the readers
			if first == nil {
				first = img
			}
			samples := unitSamples(img)
			if img.Width != first.Width || img.Height != first.Height || truth != nil && len(truth) != len(samples) {
				return nil, nil, fmt.Errorf("compare runs: the pictures of item %s differ in size from those of item %s", chunk[i].ID, m.Done[0].ID)
			}
			s.Add(samples)
			if truth != nil {
				sum += psnrOf(samples, truth)
			}
		}
	}
	row.out.Measurements++
	row.out.Runs += s.Runs
	if truth != nil {
		row.images = append(row.images, m.Image)
		row.ofMean, row.mean = append(row.ofMean, psnrOf(s.Mean, truth)), append(row.mean, sum/float64(s.Runs))
		row.calibrator.Add(s, truth)
	}
	return s, first, nil
}

func (c *runComparison) read(ctx context.Context, e *entry.Entry, file string) (*raster.Image, error) {
	key := item.Key(e.ID, file)
	data, err := c.store.Get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	sum, want := sha256.Sum256(data), e.Restored
	if file == item.FileTruth {
		want = e.Truth
	}
	if got := binary.BigEndian.Uint64(sum[:]); want != 0 && got != want {
		return nil, fmt.Errorf("read %s: %w: its SHA-256 begins with %016x, %s says %016x", key, result.ErrArtifact, got, item.FileResult, want)
	}
	img, err := raster.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	return img, nil
}

// write stores mean.png and deviation.png, with the shape of an image of the measurement.
func (c *runComparison) write(ctx context.Context, m *entry.Measurement, s *statistic.Spread, shape *raster.Image) error {
	mean := raster.New(shape.Channels, shape.Height, shape.Width)
	for i, v := range s.Mean {
		mean.Pix[i] = float32(2*v - 1)
	}
	deviation := raster.New(1, shape.Height, shape.Width)
	for i := range deviation.Pix {
		square := 0.0
		for channel := range shape.Channels {
			d := s.Deviation(channel*len(deviation.Pix) + i)
			square += d * d / float64(shape.Channels)
		}
		deviation.Pix[i] = float32(2*min(1, math.Sqrt(square)/deviationWhite) - 1)
	}
	folder := runFolder + m.Done[0].ID + "/"
	var files []page.PictureFile
	for _, p := range []struct {
		title, name string
		img         *raster.Image
	}{
		{fmt.Sprintf("Mean of %d runs", s.Runs), "mean.png", mean},
		{fmt.Sprintf("Deviation of %d runs, white: %g", s.Runs, deviationWhite), "deviation.png", deviation},
	} {
		data, err := raster.EncodePNG(p.img)
		if err != nil {
			return err
		}
		if err := result.Put(ctx, c.store, folder+p.name, data); err != nil {
			return err
		}
		c.keys = append(c.keys, folder+p.name)
		files = append(files, page.PictureFile{Title: p.title, Path: folder + p.name})
	}
	c.pictures[m.Done[0].ID] = files
	return nil
}

// unitSamples returns the samples on [0, 1].
func unitSamples(img *raster.Image) []float64 {
	out := make([]float64, len(img.Pix))
	for i, v := range img.Pix {
		out[i] = (float64(v) + 1) / 2
	}
	return out
}

// psnrOf is psnr@1 of samples on [0, 1].
func psnrOf(x, y []float64) float64 {
	sum := 0.0
	for i, v := range x {
		sum += (v - y[i]) * (v - y[i])
	}
	return -10 * math.Log10(sum/float64(len(x))+1e-8)
}
