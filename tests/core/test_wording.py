from paretoda.core.options import join_words, name_some


def test_words_are_joined_with_a_final_and():
    assert [join_words(w) for w in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == ["", "a", "a and b", "a, b and c"]


def test_a_long_list_says_how_many_names_are_left_out():
    assert [name_some(["a", "b", "c"], most) for most in (2, 3)] == ["a, b and 1 more", "a, b, c"]
