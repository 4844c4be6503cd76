"""Where the corpora lie, what each file must hash to, under which licence it comes and what it may be used for.

No third-party file is shipped. A user points FOVEATE_DATA at a folder laid out as `KNOWN` says; every loader goes
through `locate`, which refuses a file whose bytes are not the ones the results were measured on.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from foveate.core.errors import DataError
from foveate.core.files import sha256

ENVIRONMENT = "FOVEATE_DATA"

Use = Literal["yes", "no", "research"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Source:
    """One corpus: its files and the terms it comes under.

    Attributes:
        folder: where its files lie under the data root.
        what: one line on the content.
        licence: as its upstream states it.
        checkpoint: whether text of it may train the shipped checkpoint: "yes", "no", or "research" (own tests).
        upstream: the repository it comes from.
        commit: the commit of that repository the hashes belong to.
        files: file name -> sha256.
        made: how a file that upstream does not hold in this form is made; "" where all are copies.
    """

    folder: str
    what: str
    licence: str
    checkpoint: Use
    upstream: str
    commit: str
    files: dict[str, str]
    made: str = ""


def _sources() -> Iterator[Source]:
    yield Source(
        "locomo",
        "10 multi-session conversations, 5,882 turns, 1,986 questions with evidence ids",
        "CC BY-NC 4.0",
        "no",
        "snap-research/LoCoMo (data/locomo10.json)",
        "3eb6f2c585f5e1699204e3c3bdf7adc5c28cb376",
        {"locomo10.json": "79fa87e90f04081343b8c8debecb80a9a6842b76a7aa537dc9fdf651ea698ff4"},
    )
    yield Source(
        "locomo_audit",
        "third-party list of 156 disputed LoCoMo questions",
        "CC BY-NC 4.0",
        "no",
        "dial481/locomo-audit (errors.json)",
        "9493fb4b4af4",
        {"errors.json": "f298ef46263fada20688a1d672be37d4f488c6da3b19343eea55ae5c1b5fe55e"},
    )
    yield Source(
        "locco",
        "LOCCO and LOCCO-L, long chatbot histories (no questions released)",
        "README says MIT, no licence file",
        "no",
        "JamesLLMs/LoCoGen (only in the history)",
        "a81b5760945f170a64b80aff4fe00058515e430c",
        {
            "LOCCO.json": "55512a73c055ec38d11b11645137f23acdca1f35f61959a92685d73fe420afd3",
            "LOCCO_L.json": "4bc671cc1b7e7e970dd916d932b375a6b83a77115284620ffd82b3e13129ad9a",
        },
    )
    yield Source(
        "longbench/config",
        "official LongBench prompts and answer lengths",
        "MIT",
        "no",
        "THUDM/LongBench (LongBench/config)",
        "2e00731f8d0bff23dc4325161044d0ed8af94c1e",
        {
            "dataset2prompt.json": "56d22ad4f382169c2b8a11ff4c982a4a1bea096c8152b0f0b85b64686b157c30",
            "dataset2maxlen.json": "72966b3c0933e214591637fb085798c5e687ebff4ddaab5d99bbc31120532022",
        },
    )
    yield Source(
        "longbench/minilongbench",
        "187 English LongBench items of 16 tasks",
        "none stated; the underlying sets keep their own",
        "no",
        "MilkThink-Lab/MiniLongBench (pred_data/example)",
        "504c24798b2f1bcf57d9e111251fd0f5454ed751",
        {"minilongbench_en.jsonl": "b495fccdc8e548b6d361f6339bfc9fc584e10443ab8a37a7971eb144f34166b4"},
        made="the 16 English files joined, one record a line {task, idx, prompt, answers, all_classes}",
    )
    yield Source(
        "qmsum",
        "232 meetings with queries and the spans that answer them",
        "MIT",
        "yes",
        "Yale-LILY/QMSum (data/ALL)",
        "83d7768c1f2b4dfeb091385d3dc7e239b8e5bb7e",
        {
            "ALL_train_rebuilt.jsonl": "911dfe8f93de6e05526192686abe33eac666b3802fffe01feb44d26220f300b3",
            "val.jsonl": "fc7444e241bdbe6997c01720d07f1a58b7357284acb73f909766e5a4700db49f",
            "test.jsonl": "6bcd428211260ad2efae3af76cbaf6a7f5ae4bb5e1e59c45a4b8e89539cb9208",
        },
        made='ALL_train_rebuilt.jsonl joins data/ALL/train/*.json, one meeting a line, plus the key "file"',
    )
    yield Source(
        "friendsqa",
        "scripted multi-party dialogue with questions and utterance ids",
        "Apache-2.0; the text is TV transcripts",
        "research",
        "emorynlp/FriendsQA (dat)",
        "9ce6c98a6acf13c87d96b6811e4409b5de43bdfe",
        {
            "friendsqa_dev.json": "3a85d3fcb175589ffd050fb4bf431da77a6e12589c8ec03f1d54060ce33ec703",
            "friendsqa_tst.json": "a98f24d4b04ac9f8d9468088febf304bd90eada134537277c1a425e31c0372bc",
        },
    )
    yield Source(
        "mts_dialog",
        "1,701 doctor-patient dialogues with section label and summary",
        "CC BY 4.0",
        "yes",
        "abachaa/MTS-Dialog (Main-Dataset)",
        "3ff0801933608d6f570468c13125125fb5cabdea",
        {
            "MTS-Dialog-TrainingSet.csv": "65a28681dd59fc159681ea026e44610f2af7bc64a0e7f892d763eb03d9f503dc",
            "MTS-Dialog-ValidationSet.csv": "227206520c4534381c0d7fba6d3f09319a9af5a6d9603a93c0341af1198e3958",
            "MTS-Dialog-TestSet-1-MEDIQA-Chat-2023.csv": (
                "b4d38dd2c99b2e9860099abcf653f1e0f3e9b69f9fcc45be2a2699b37a4d2f37"
            ),
            "MTS-Dialog-TestSet-2-MEDIQA-Sum-2023.csv": (
                "226644466ed3af82382b327a3e684aab70aa605b96cfd93b04f584f1826ab1a6"
            ),
        },
    )
    yield Source(
        "aci_bench",
        "207 full doctor visits with notes",
        "CC BY 4.0",
        "yes",
        "wyim/aci-bench (data/challenge_data)",
        "b909b2bb9cf1d19de08df15cddde7bd0179665e4",
        {
            "train.csv": "6c778d4ac5e6cc6f1964786f9286e8d765c210f22ed6b57f83aff8497409cea4",
            "valid.csv": "6629e89e3fb409d2b3eceab60dc7b32fe1d3fb8d4e07795039284965522aa4d0",
            "clinicalnlp_taskB_test1.csv": "5cc4008e68545f84913744a8e493a58bdf17ba7e1b7a0be46d6943d6bfca9471",
            "clinicalnlp_taskC_test2.csv": "599e3330a14e25a0e056aee1365ffac7ebe50058f15821eae42a5513c2bb5a4f",
            "clef_taskC_test3.csv": "d3c18362a42124ea2bd1b2b4b66ba76a11bb123dfdb416471ae3b5924d1428ec",
        },
    )
    yield Source(
        "dialogsum",
        "1,000 short dialogues with summaries (dev and test)",
        "CC BY-NC-SA 4.0",
        "no",
        "cylnlp/dialogsum (DialogSum_Data)",
        "848cc8c05e0a04def79326539de827f1b28786a0",
        {
            "dialogsum.dev.jsonl": "436721e0a3571eef7072964f80e042fb151d8c6178db1a688ce8f803bbf0a13f",
            "dialogsum.test.jsonl": "6de36eca7e7b9b10975fd5ea3f47391df172d8b3c15d03d84d763cbaab015fda",
        },
    )
    yield Source(
        "nli/snli_dev_test",
        "SNLI dev and test",
        "CC BY-SA 4.0",
        "yes",
        "OanaMariaCamburu/e-SNLI (dataset/eSNLI)",
        "7b585a3f077fdea899780eb0473940522ae44a2e",
        {
            "s1.dev": "28a398b5478b10b4b851d4bb5b2e5767171519add6586015ed50b9436df11d00",
            "s1.test": "62cb8107dc3c56a4376e5e521842be24e0d61c92c346b94917da2bbf2a47d8be",
            "s2.dev": "a8c59709630b64ba103f7784c0cb7104a6baf23234562487264d9634714f5d2b",
            "s2.test": "1174f3ad30a3c30fc0f9eeffc1b3b6a79e0514026c5a658968a8e2a324b311a1",
            "labels.dev": "d164d72435c3289fe53cb01e983f7c06e104bf192c0cae9caf2e99bf2e15f974",
            "labels.test": "e25c363e5cc70d5494d6e6555d8053eced22dca836e0f03067530eaad3d4f5f5",
        },
    )
    yield Source(
        "nli/counterfactual_snli",
        "counterfactually edited SNLI",
        "Apache-2.0, on SNLI text (CC BY-SA 4.0)",
        "yes",
        "acmi-lab/counterfactually-augmented-data (NLI)",
        "6f232a1d2a11462a30ce08fb4825b734ab30828e",
        {
            "all_combined_train.tsv": "b04c0e249b71949345afc20f8c31c355533a705a68805492f21cddc49d27234f",
            "all_combined_dev.tsv": "35c585cef5fc68e3713ee4bac83242aa7c4bfc6b51f16e9745b674c358ebd500",
            "all_combined_test.tsv": "585ea3630ed64f6976d5ce1fd8c519c46c102659a012b7e9cbe48ec03503d977",
        },
    )
    yield Source(
        "nli/breaking_nli",
        "NLI with one word replaced (mostly contradictions)",
        "CC BY-SA 4.0",
        "yes",
        "BIU-NLP/Breaking_NLI (breaking_nli_dataset.zip)",
        "8a7658c1ce6b732f4e8af3b06560f1a13b8b18b0",
        {"dataset.jsonl": "72d182edc66b20e404295567d2dc5c50751071c7ab980e791273a51df4334cf1"},
        made="dataset.jsonl is the data file of breaking_nli_dataset.zip",
    )
    yield Source(
        "nli/conjnli",
        "NLI over conjunctions",
        "MIT; sentences from Wikipedia (CC BY-SA)",
        "yes",
        "swarnaHub/ConjNLI (data/NLI)",
        "10e0515c0d1777651b5084d9cca4664ead8162a4",
        {
            "conj_dev.tsv": "6dc560fa1d6c0b7377c499db0b9d400761da1e54fece0d64f3f60f4e392b7545",
            "adversarial_train_15k.tsv": "00133a82516686b321cf8e0077935a975e7d924f04dda5b7c655e5886996de33",
        },
    )
    yield Source(
        "nli/negation_nli",
        "NLI over negation (SNLI and MNLI sentences)",
        "MIT",
        "yes",
        "mosharafhossain/negation-and-nli (data/new_benchmarks/clean_data)",
        "e7848fb621c32ec43511a5bfc406fc9208baf4f8",
        {
            "SNLI.txt": "962685f85f1580fe562b82bbb160b7d789103d62d6ed8c7444186bbe0cba92c5",
            "MNLI.txt": "eaf31305308483a00bf6f915baa78cfe63c1fd6b4f27dc3cca3f5fb48ae2b57e",
        },
    )
    yield Source(
        "nli/prosecco_decode_mnli",
        "ProSeCCo, DECODE contradicting pairs, MNLI dev (binary)",
        "CC BY-SA 4.0 / unstated / mixed",
        "research",
        "henrikebeyer/ProSeCCo",
        "eeffc009228c67b704346ea1221ee176c8ddc785",
        {
            "ProSeCCo_final.json": "96152846dae443c6596e6d0dee299cb7c5de34e301d311df76116f858117d19b",
            "decode_pairs.tsv": "220aa8494165a86b1b0e39bbcb896d4217b2d9b3a60b63e127c40cba650ef1fa",
            "mnli_dev_matched_binary_2000.csv": "127b50df15c1bdf3c9be9bbe112ed8b8ea66db198c3d2e7453c068723bee8ab3",
        },
    )
    yield Source(
        "nli/dnli_spoken_gu",
        "NLI over spoken British dialogue",
        "MIT repository, BNC text",
        "research",
        "GU-CLASP/DNLI (data/compiled)",
        "b8e5e383467bdbfec600cb5189fd9a7941fd5d6e",
        {
            "train_5_data.csv": "696e1856e68a15f84085d9f8d562b03b10088521e0c6dd3dfada3cd289203c8f",
            "dev_5_data.csv": "0b4c7c4cc064c63c320f5b050346da7e265a5a09b938883eeb1d7d94f0cc9392",
            "test_5_data.csv": "4a244a123b767e655038176e9b1e69da01b29d46709b6f08eeb76e07004462ca",
        },
    )


KNOWN: dict[str, Source] = {source.folder: source for source in _sources()}


def data_root() -> Path:
    """The folder FOVEATE_DATA names.

    Raises:
        DataError: the variable is not set, or names no folder.
    """
    value = os.environ.get(ENVIRONMENT, "")
    if not value:
        raise DataError(
            f"{ENVIRONMENT} is not set: export {ENVIRONMENT}=/path/to/data (`foveate data where` says what goes there)"
        )
    root = Path(value).expanduser()
    if not root.is_dir():
        raise DataError(f"{ENVIRONMENT}={value} is not a folder: point it at the one that holds locomo/, qmsum/, ...")
    return root


def verify(path: Path, expected: str) -> None:
    """Refuse a file that is absent or whose sha256 is not `expected`.

    Raises:
        DataError: says which hash was expected, which was found, and the way out.
    """
    if not path.is_file():
        raise DataError(f"{path} is missing: `foveate data where` says where to get it")
    found = sha256(path)
    if found != expected:
        raise DataError(
            f"{path} has changed: expected sha256 {expected}, found {found}; "
            "get the pinned file again (`foveate data where`), results on other bytes would not be comparable"
        )


def locate(root: Path, folder: str, name: str) -> Path:
    """The verified path of a known file.

    Raises:
        DataError: the file is not in `KNOWN`, is missing, or has changed.
    """
    source = KNOWN.get(folder)
    if source is None or name not in source.files:
        raise DataError(f"{folder}/{name} is no known data file: see `foveate data list`")
    path = root / folder / name
    verify(path, source.files[name])
    return path


def read_json(path: Path) -> Any:
    """A JSON file's value.

    Raises:
        DataError: the file cannot be read, or is not JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise DataError(f"{path} is not JSON: {error}") from error


def read_jsonl(path: Path, parse: Callable[[Any, int], T]) -> list[T]:
    """Parse each non-empty line of a JSONL file with `parse(value, line number from 1)`.

    Raises:
        DataError: the file cannot be read, or a line is not JSON; `parse` may raise its own.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text: {error}") from error
    records: list[T] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except ValueError as error:
            raise DataError(f"{path} line {number} is not JSON: {error}") from error
        records.append(parse(value, number))
    return records
