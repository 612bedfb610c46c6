"""Train by a job array, as on SLURM: one job per file of rows, files of parts in between, one job that merges them.

    python examples/parts_job_array.py survey 3 FOLDER      # for each number: ranges and labels of rows-3.csv
    python examples/parts_job_array.py part 3 FOLDER        # for each number, when all surveys are there
    python examples/parts_job_array.py finish FOLDER        # when all parts are there

On SLURM the first line is `sbatch --array=0-7 --wrap 'python … survey $SLURM_ARRAY_TASK_ID FOLDER'`. A job that was
killed leaves no file and is run again; a job that ran twice replaced its own file.
"""

import sys
from functools import reduce
from pathlib import Path

from ocrep import PinvClassifier, parts, save_model, scan

# A seed, so that every job draws the same hidden layer.
MODEL = PinvClassifier(100, gamma="ocrep_cv", fit_intercept=True, random_state=0)


def merged(kind, paths):
    return reduce(kind.merge, (kind.load(path) for path in sorted(paths)))


def rows(folder, number):
    return scan(folder / f"rows-{number}.csv", target="target")


def complete_plan(folder):
    return parts.plan(MODEL).with_survey(merged(parts.Survey, folder.glob("survey-*.npz")))


def main(command, *arguments):
    *numbers, folder = arguments
    folder = Path(folder)
    n_parts = len(list(folder.glob("rows-*.csv")))
    if command == "survey":
        number = int(numbers[0])
        parts.plan(MODEL).survey(rows(folder, number), part_number=number).save(folder / f"survey-{number}.npz")
    elif command == "part":
        number = int(numbers[0])
        complete_plan(folder).of(rows(folder, number), part_number=number).save(folder / f"part-{number}.npz")
    elif command == "finish":
        model = complete_plan(folder).finish(merged(parts.Part, folder.glob("part-*.npz")), n_parts=n_parts)
        save_model(model, folder / "model.ocrep")
        print(f"γ = {model.gamma_:.3g}, from {n_parts} parts")


if __name__ == "__main__":
    main(*sys.argv[1:])
