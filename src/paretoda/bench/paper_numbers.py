"""The numbers of Lv et al., "Pareto Domain Adaptation" (2021): tables 1 to 4, and the error bars of its appendix.

The appendix repeats tables 1 and 2 with standard deviations in the rows "+ ParetoDA"; no other row has any. The fifth
column of Office-31 is headed "D:W" a second time in the paper, but is D-A. Its rows "CDAN" are what the CDAN paper
calls CDAN+E on the first two suites. The averages that it prints for JADA on Office-31 (86.1) and for DTA (81.5) are
not the means of the rows. The row CBST of table 4 was measured with another network (ResNet-38).
"""

from __future__ import annotations

from collections.abc import Sequence


def _parse(columns: Sequence[str], rows: dict[str, str]) -> dict[str, dict[str, float]]:
    """Return rows of percentages as fractions; each row has one number for every column."""
    return {
        f"{name} (paper)": {
            column: round(float(value) / 100, 3) for column, value in zip(columns, values.split(), strict=True)
        }
        for name, values in rows.items()
    }


_OFFICE31_COLUMNS = ("A-W", "D-W", "W-D", "A-D", "D-A", "W-A")
OFFICE31_PAPER = _parse(
    _OFFICE31_COLUMNS,
    {
        "ResNet-50": "68.4 96.7 99.3 68.9 62.5 60.7",
        "DAN": "80.5 97.1 99.6 78.6 63.6 62.8",
        "JADA": "90.5 97.5 100.0 88.2 70.9 70.6",
        "BNM": "91.5 98.5 100.0 90.3 70.9 71.6",
        "TAT": "92.5 99.3 100.0 93.2 73.1 72.1",
        "GSP": "92.9 98.7 99.8 94.5 75.9 74.9",
        "DANN": "82.0 96.9 99.1 79.7 68.2 67.4",
        "DANN + BSP": "93.0 98.0 100.0 90.0 71.9 73.0",
        "DANN + MCC": "95.6 98.6 99.3 93.8 74.0 75.0",
        "DANN + ParetoDA": "95.5 98.7 100.0 93.8 76.7 76.3",
        "CDAN": "94.1 98.6 100.0 92.9 71.0 69.3",
        "CDAN + BSP": "93.3 98.2 100.0 93.0 73.6 72.6",
        "CDAN + MCC": "94.7 98.6 100.0 95.0 73.0 73.6",
        "CDAN + ParetoDA": "95.0 98.9 100.0 95.4 77.6 75.7",
        "MDD": "93.5 98.4 100.0 94.5 74.6 72.2",
        "MDD + ParetoDA": "95.4 98.9 100.0 94.4 76.2 75.8",
    },
)
OFFICE31_STDS = _parse(
    _OFFICE31_COLUMNS,
    {
        "DANN + ParetoDA": "0.1 0.3 0.0 0.2 0.2 0.3",
        "CDAN + ParetoDA": "0.2 0.1 0.0 0.2 0.3 0.2",
        "MDD + ParetoDA": "0.2 0.2 0.0 0.3 0.4 0.2",
    },
)
_OFFICE_HOME_COLUMNS = (
    *("Ar-Cl", "Ar-Pr", "Ar-Rw", "Cl-Ar", "Cl-Pr", "Cl-Rw"),
    *("Pr-Ar", "Pr-Cl", "Pr-Rw", "Rw-Ar", "Rw-Cl", "Rw-Pr"),
)
OFFICE_HOME_PAPER = _parse(
    _OFFICE_HOME_COLUMNS,
    {
        "ResNet-50": "34.9 50.0 58.0 37.4 41.9 46.2 38.5 31.2 60.4 53.9 41.2 59.9",
        "DAN": "43.6 57.0 67.9 45.8 56.5 60.4 44.0 43.6 67.7 63.1 51.5 74.3",
        "TAT": "51.6 69.5 75.4 59.4 69.5 68.6 59.5 50.5 76.8 70.9 56.6 81.6",
        "TPN": "51.2 71.2 76.0 65.1 72.9 72.8 55.4 48.9 76.5 70.9 53.4 80.4",
        "BNM": "52.3 73.9 80.0 63.3 72.9 74.9 61.7 49.5 79.7 70.5 53.6 82.2",
        "MDD": "54.9 73.7 77.8 60.0 71.4 71.8 61.2 53.6 78.1 72.5 60.2 82.3",
        "GSP": "56.8 75.5 78.9 61.3 69.4 74.9 61.3 52.6 79.9 73.3 54.2 83.2",
        "DANN": "45.6 59.3 70.1 47.0 58.5 60.9 46.1 43.7 68.5 63.2 51.8 76.8",
        "DANN + BSP": "51.4 68.3 75.9 56.0 67.8 68.8 57.0 49.6 75.8 70.4 57.1 80.6",
        "DANN + MetaAlign": "48.6 69.5 76.0 58.1 65.7 68.3 54.9 44.4 75.3 68.5 50.8 80.1",
        "DANN + ParetoDA": "55.2 74.4 79.0 61.9 72.4 72.9 62.1 55.8 81.1 74.4 61.1 82.4",
        "CDAN": "50.7 70.6 76.0 57.6 70.0 70.0 57.4 50.9 77.3 70.9 56.7 81.6",
        "CDAN + BSP": "52.0 68.6 76.1 58.0 70.3 70.2 58.6 50.2 77.6 72.2 59.3 81.9",
        "CDAN + MetaAlign": "55.2 70.5 77.6 61.5 70.0 70.0 58.7 55.7 78.5 73.3 61.0 81.7",
        "CDAN + ParetoDA": "56.8 75.9 80.5 64.4 73.5 73.7 65.6 55.2 81.3 75.2 61.1 83.9",
    },
)
OFFICE_HOME_STDS = _parse(
    _OFFICE_HOME_COLUMNS,
    {
        "DANN + ParetoDA": "0.4 0.3 0.4 0.6 0.5 0.3 0.4 0.5 0.4 0.6 0.5 0.4",
        "CDAN + ParetoDA": "0.3 0.4 0.2 0.5 0.3 0.6 0.4 0.5 0.2 0.5 0.4 0.3",
    },
)
VISDA_PAPER = _parse(
    ("train-validation",),
    {
        "ResNet-101": "52.4",
        "DAN": "61.1",
        "MCD": "71.9",
        "JADA": "77.0",
        "TPN": "80.4",
        "DTA": "81.5",
        "DANN": "57.4",
        "DANN + BSP": "72.1",
        "DANN + ParetoDA": "82.4",
        "CDAN": "73.9",
        "CDAN + BSP": "75.9",
        "CDAN + ParetoDA": "83.2",
    },
)
VISDA_CLASSES_PAPER = _parse(
    (
        *("aeroplane", "bicycle", "bus", "car", "horse", "knife"),
        *("motorcycle", "person", "plant", "skateboard", "train", "truck"),
    ),
    {
        "ResNet-101": "55.1 53.3 61.9 59.1 80.6 17.9 79.7 31.2 81.0 26.5 73.5 8.5",
        "DAN": "87.1 63.0 76.5 42.0 90.3 42.9 85.9 53.1 49.7 36.3 85.8 20.7",
        "MCD": "87.0 60.9 83.7 64.0 88.9 79.6 84.7 76.9 88.6 40.3 83.0 25.8",
        "JADA": "91.9 78.0 81.5 68.7 90.2 84.1 84.0 73.6 88.2 67.2 79.0 38.0",
        "TPN": "93.7 85.1 69.2 81.6 93.5 61.9 89.3 81.4 93.5 81.6 84.5 49.9",
        "DTA": "93.7 82.2 85.6 83.8 93.0 81.0 90.7 82.1 95.1 78.1 86.4 32.1",
        "DANN": "81.9 77.7 82.8 44.3 81.2 29.5 65.1 28.6 51.9 54.6 82.8 7.8",
        "DANN + BSP": "92.2 72.5 83.8 47.5 87.0 54.0 86.8 72.4 80.6 66.9 84.5 37.1",
        "DANN + ParetoDA": "95.3 82.4 82.9 56.2 92.6 95.0 87.1 81.1 90.2 90.8 87.8 46.7",
        "CDAN": "85.2 66.9 83.0 50.8 84.2 74.9 88.1 74.5 83.4 76.0 81.9 38.0",
        "CDAN + BSP": "92.4 61.0 81.0 57.5 89.0 80.6 90.1 77.0 84.2 77.9 82.1 38.4",
        "CDAN + ParetoDA": "95.9 82.8 81.3 58.7 93.9 93.7 85.9 83.0 91.9 92.0 87.1 51.8",
    },
)
GTA5_PAPER = _parse(
    ("GTA5-Cityscapes",),
    {
        "ResNet-101": "36.6",
        "AdaSegNet": "42.4",
        "CyCADA": "42.7",
        "CLAN": "43.2",
        "AdvEnt": "43.8",
        "AdvEnt + ParetoDA": "46.1",
        "FDA": "44.6",
        "FDA + ParetoDA": "47.2",
        "CBST": "45.2",
        "CBST + ParetoDA": "48.1",
    },
)
"""Mean IoU of 19 classes on the validation images of Cityscapes."""
GTA5_CLASSES_PAPER = _parse(
    (
        *("road", "sidewalk", "building", "wall", "fence", "pole", "traffic light", "traffic sign", "vegetation"),
        *("terrain", "sky", "person", "rider", "car", "truck", "bus", "train", "motorcycle", "bicycle"),
    ),
    {
        "ResNet-101": "75.8 16.8 77.2 12.5 21.0 25.5 30.1 20.1 81.3 24.6 70.3 53.8 26.4 49.9 17.2 25.9 6.5 25.3 36.0",
        "AdaSegNet": "86.5 36.0 79.9 23.4 23.3 23.9 35.2 14.8 83.4 33.3 75.6 58.5 27.6 73.7 32.5 35.4 3.9 30.1 28.1",
        "CyCADA": "86.7 35.6 80.1 19.8 17.5 38.0 39.9 41.5 82.7 27.9 73.6 64.9 19.0 65.0 12.0 28.6 4.5 31.1 42.0",
        "CLAN": "87.0 27.1 79.6 27.3 23.3 28.3 35.5 24.2 83.6 27.4 74.2 58.6 28.0 76.2 33.1 36.7 6.7 31.9 31.4",
        "AdvEnt": "89.9 36.5 81.6 29.2 25.2 28.5 32.3 22.4 83.9 34.0 77.1 57.4 27.9 83.7 29.4 39.1 1.5 28.4 23.3",
        "AdvEnt + ParetoDA": (
            "79.6 29.1 83.4 30.4 22.4 32.6 39.2 26.7 82.5 26.5 82.2 63.0 29.8 85.9 36.1 43.5 9.2 29.9 43.7"
        ),
        "FDA": "90.0 40.5 79.4 25.3 26.7 30.6 31.9 29.3 79.4 28.8 76.5 56.4 27.5 81.7 27.7 45.1 17.0 23.8 29.6",
        "FDA + ParetoDA": (
            "85.4 37.6 84.0 32.0 23.8 33.1 39.6 25.9 84.0 30.6 81.6 61.3 30.9 85.4 31.9 45.0 7.6 32.4 45.4"
        ),
        "CBST": "86.8 46.7 76.9 26.3 24.8 42.0 46.0 38.6 80.7 15.7 48.0 57.3 27.9 78.2 24.5 49.6 17.7 25.5 45.1",
        "CBST + ParetoDA": (
            "82.4 50.7 80.2 34.9 36.7 45.9 47.2 45.1 72.9 27.8 46.0 62.3 33.0 81.4 29.5 44.3 14.0 29.8 49.3"
        ),
    },
)
